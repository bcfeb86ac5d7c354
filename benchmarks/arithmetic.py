"""The speed of a training step's arithmetic against that of its matrix products alone by plain sgemm.

The shapes of every matrix product in one step are noted, attention's inner products left out; then the products alone
are timed, on fresh operands of these shapes and by `torch.matmul`, in turn with the step. The step can win: its frozen
weights are packed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.backbones import NO_EMBEDDED, has_embedded
from benchmarks.comparison import OURS, THEIRS, Row, interleaved
from benchmarks.training_step import BATCH, CASES, SMOLLM, TARGET, sides_of

WHAT = "arithmetic of a training step from the store, FLOP/s"
AGAINST = "plain sgemm of the same shapes"

PACKED = torch.ops.mkldnn._linear_pointwise.default if torch.backends.mkldnn.is_available() else None  # type: ignore[no-untyped-call]

Pair = tuple[tuple[int, ...], tuple[int, ...]]


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the shapes of matrix products."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shapes: Counter[Pair] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shapes = _pair_of(func, args)
        if shapes:
            self.shapes[shapes] += 1
        return func(*args, **(kwargs or {}))


def _pair_of(func: Any, args: Any) -> Pair | None:
    """The operands of a matrix product, (…, m, k) and (…, k, n); None for anything else."""
    if func in (torch.ops.aten.mm.default, torch.ops.aten.bmm.default):
        a, b = tuple(args[0].shape), tuple(args[1].shape)
        return None if 1 in (a[-2], b[-1]) else (a, b)  # a sum of products, which is bound by memory
    if func is torch.ops.aten.addmm.default:
        return tuple(args[1].shape), tuple(args[2].shape)
    if PACKED is not None and func is PACKED:
        return (args[0].numel() // args[0].shape[-1], args[0].shape[-1]), tuple(reversed(args[1].shape))
    return None


def products_of(step: Callable[[], Any]) -> Counter[Pair]:
    noted = _Products()
    with noted:
        step()
    return noted.shapes


def flops_of(shapes: Counter[Pair]) -> float:
    return float(sum(2 * torch.Size(a).numel() * b[-1] * count for (a, b), count in shapes.items()))


def rows(repeats: int) -> list[Row]:
    if not has_embedded():
        return [Row(WHAT, AGAINST, promised=0.7, skipped=NO_EMBEDDED)]
    step = sides_of(CASES[SMOLLM], (OURS,))[OURS]
    shapes = products_of(step)
    operands = {pair: (torch.randn(pair[0]), torch.randn(pair[1])) for pair in shapes}

    def products() -> None:
        for pair, count in shapes.items():
            a, b = operands[pair]
            for _ in range(count):
                torch.matmul(a, b)

    seconds, _ = interleaved({OURS: step, THEIRS: products}, repeats)
    flops = flops_of(shapes)
    return [
        Row(
            WHAT,
            f"{AGAINST} (batch {BATCH}, {CASES[SMOLLM].source} source and {TARGET} target tokens)",
            ratio=seconds[THEIRS].median / seconds[OURS].median,
            promised=0.7,
            ours=seconds[OURS],
            theirs=seconds[THEIRS],
            details={
                "gigaflops_a_step": flops / 1e9,
                "gigaflops_a_second": flops / 1e9 / seconds[OURS].median,
                "gigaflops_a_second_of_sgemm": flops / 1e9 / seconds[THEIRS].median,
            },
        )
    ]
