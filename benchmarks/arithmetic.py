"""The speed of a training step's arithmetic against that of its products alone, each by the machine's best kernel.

The operands of every matrix product in one step are noted, shapes and number format. Then each product is timed alone
on fresh operands, by `torch.matmul` and by oneDNN with its weight packed, and the faster of the two counts. So a step
of products and nothing else would reach 1.
"""

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.backbones import NO_EMBEDDED, has_embedded
from benchmarks.comparison import OURS, Row, interleaved, spread
from benchmarks.training_step import BATCH, CASES, SMOLLM, TARGET, Side, step_of
from pipeline.model.onednn import linear, packed
from pipeline.model.precision import resolve

WHAT = "arithmetic of a training step from the store, FLOP/s"
AGAINST = "the machine's best kernel for each of its products"
AIM = 0.6
TIMES = 5

PACKED = torch.ops.mkldnn._linear_pointwise.default if torch.backends.mkldnn.is_available() else None  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Product:
    """The operands of a matrix product, (…, m, k) and (…, k, n)."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    dtype: torch.dtype

    @property
    def flops(self) -> float:
        return 2.0 * math.prod(self.left) * self.right[-1]


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes matrix products."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: Counter[Product] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        product = _product_of(func, args)
        if product:
            self.found[product] += 1
        return func(*args, **(kwargs or {}))


def _product_of(func: Any, args: Any) -> Product | None:
    """What is multiplied; None where nothing is."""
    aten = torch.ops.aten
    if func in (aten.mm.default, aten.bmm.default):
        left, right = args[0], args[1]
    elif func in (aten.addmm.default, aten.baddbmm.default):
        left, right = args[1], args[2]
    elif PACKED is not None and func is PACKED:
        rows = args[0].numel() // args[0].shape[-1]
        return Product((rows, args[0].shape[-1]), (args[1].shape[1], args[1].shape[0]), args[0].dtype)
    else:
        return None
    if 1 in (left.shape[-2], right.shape[-1]):
        return None  # a sum of products, which is bound by memory
    return Product(tuple(left.shape), tuple(right.shape), left.dtype)


def products_of(step: Callable[[], Any]) -> Counter[Product]:
    noted = _Products()
    with noted:
        step()
    return noted.found


def best_seconds(product: Product) -> float:
    """The faster kernel's least time: what comes on top, as fresh memory for its result, is the step's own cost."""
    left, right = torch.randn(product.left).to(product.dtype), torch.randn(product.right).to(product.dtype)
    kernels: list[Callable[[], Any]] = [lambda: torch.matmul(left, right)]
    if len(product.left) == 2 and PACKED is not None:
        weight = packed(right.t().contiguous())
        kernels.append(lambda: linear(left, weight))
    return min(_least(kernel) for kernel in kernels)


def _least(kernel: Callable[[], Any]) -> float:
    kernel()
    seconds = []
    for _ in range(TIMES):
        began = time.perf_counter()
        kernel()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def rows(repeats: int) -> list[Row]:
    precision = resolve("auto", "cpu")
    what = f"{WHAT}, {precision}"
    if not has_embedded():
        return [Row(what, AGAINST, promised=AIM, skipped=NO_EMBEDDED)]
    step = step_of(CASES[SMOLLM], Side(OURS, precision))
    found = products_of(step)
    totals: list[float] = []

    def products() -> None:
        totals.append(sum(count * best_seconds(product) for product, count in found.items()))

    seconds, _ = interleaved({OURS: step, "products": products}, repeats)
    best = spread(totals[1:])
    flops = sum(count * product.flops for product, count in found.items())
    return [
        Row(
            what,
            f"{AGAINST} (batch {BATCH}, {CASES[SMOLLM].source} source and {TARGET} target tokens)",
            ratio=best.median / seconds[OURS].median,
            promised=AIM,
            ours=seconds[OURS],
            theirs=best,
            details={
                "gigaflops_a_step": flops / 1e9,
                "gigaflops_a_second": flops / 1e9 / seconds[OURS].median,
                "gigaflops_a_second_of_the_best_kernels": flops / 1e9 / best.median,
            },
        )
    ]
