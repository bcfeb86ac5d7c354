"""One training step of AdaFedSelectKD from the prefix store, against the same step written the obvious way.

The obvious way: transformers' own full forward of source and target, adapters as modules on the top layers by hooks,
once without gradient for the teacher and once for the student, one backward pass; logits and adapters where a target
is predicted and nowhere else. Both give the same numbers, which is checked. A step is loss and gradients here: clipping
and AdamW, the same few milliseconds on both sides, are left out. The two sides' peak memory is taken in a process of
its own each. On a GPU both sides run in bf16 with the loss in fp32, the other one through `torch.compile`.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.backbones import NO_EMBEDDED, Model, bart, embedded, has_embedded
from benchmarks.comparison import OURS, THEIRS, Row, interleaved, peak_memory
from benchmarks.eq8 import token_losses
from pipeline.errors import QuorumError
from pipeline.federated.head import backward_through_head
from pipeline.federated.objectives.distillation import Distillation
from pipeline.federated.objectives.threshold import Threshold
from pipeline.model.adapter import Adapt, Adapter, adapting, apply_adapter, attached, init_adapter
from pipeline.model.backbone import Backbone, Rendered, targets_of
from pipeline.model.store import PrefixStore

TAU, RANDOM_TAU, WEIGHT = 5.0, 20.0, 0.2
BATCH, TARGET = 16, 80
PLAINLY = "the same step written plainly with transformers"
H200_BF16 = 989e12
"""Peak FLOP/s without sparsity, from the maker's data sheet."""


@dataclass(frozen=True)
class Case:
    """A model, what it reads, its adapters' inner width, and how many times faster and smaller a step has to be.

    `compiled`: the other side goes through `torch.compile`.

    `tau`: random weights are sure of nothing, so a threshold that distils something is a high one.
    """

    model: Callable[[], Model]
    source: int
    bottleneck: int
    faster: float
    smaller: float | None = None
    tau: float = TAU
    device: str = "cpu"
    dtype: torch.dtype = torch.float32
    compiled: bool = False


SMOLLM = "SmolLM2-135M-Instruct"
GPU = "BART-large's shape in bf16 on a GPU"
CASES = {
    SMOLLM: Case(embedded, 448, 1152, faster=12.0, smaller=3.0),
    "BART-base's shape": Case(lambda: bart(768), 1024, 1536, faster=5.0, tau=RANDOM_TAU),
    GPU: Case(
        lambda: bart(1024, 12, "cuda", torch.bfloat16),
        1024,
        2048,
        faster=4.0,
        tau=RANDOM_TAU,
        device="cuda",
        dtype=torch.bfloat16,
        compiled=True,
    ),
}


def batch(size: int, source: int, target: int, vocabulary: int, end: int) -> list[Rendered]:
    """Random tokens of full length: the store's advantage does not depend on what they say."""
    generator = torch.Generator().manual_seed(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, min(vocabulary, 250), (count,), generator=generator).tolist())

    return [Rendered(ids(source), (*ids(target - 1), end), source, source) for _ in range(size)]


def from_store(backbone: Backbone, prefixes: list[Any], student: Adapter, teacher: Adapter, tau: float) -> float:
    targets = targets_of(prefixes)
    hidden = backbone.target_hidden(prefixes, student)
    with torch.no_grad():
        guide = backbone.target_hidden(prefixes, teacher)
    objective = Distillation(Threshold(tau), WEIGHT)
    losses = backward_through_head(backbone.head, hidden, targets, objective, guide)
    return float(losses.loss.mean())


def adapting_from(start: int, adapter: Adapter) -> Adapt:
    """The positions from `start` on, and no work on the others."""

    def adapt(layer: int, hidden: torch.Tensor) -> torch.Tensor:
        adapted = apply_adapter(adapter, layer, hidden[:, start:], post_norm=False)
        return torch.cat([hidden[:, :start], adapted], dim=1)

    return adapt


def plain_logits(model: Any, rendered: list[Rendered], *, compiled: bool) -> Callable[[Adapter], torch.Tensor]:
    """Full forward of equal-length sources and targets in one batch: adapter -> logits of the targets.

    Hooks are put on once, before compilation, and read the adapter in use: those of a later step would not be seen.
    """
    used: Adapter = {}
    inputs: dict[str, Any]
    targets = torch.tensor([r.target for r in rendered], device=model.device)
    if model.config.is_encoder_decoder:
        layers, adapt = model.get_decoder().layers, adapting(used, post_norm=True)
        inputs = {"input_ids": torch.tensor([r.source for r in rendered], device=model.device), "labels": targets}
    else:
        ids = torch.tensor([r.source + r.target[:-1] for r in rendered], device=model.device)
        start = len(rendered[0].source) - 1
        layers, adapt = model.model.layers, adapting_from(start, used)
        inputs = {"input_ids": ids, "logits_to_keep": ids.shape[1] - start}
    hooks = ExitStack()
    hooks.enter_context(attached(layers, adapt))
    atexit.register(hooks.close)
    run = torch.compile(model) if compiled else model

    def logits(adapter: Adapter) -> torch.Tensor:
        used.clear()
        used.update(adapter)
        found: torch.Tensor = run(**inputs, use_cache=False).logits
        return found

    return logits


def plainly(
    logits: Callable[[Adapter], torch.Tensor], targets: torch.Tensor, student: Adapter, teacher: Adapter, tau: float
) -> float:
    """Teacher without gradient, student with it, the loss on full logits, one backward pass."""
    with torch.no_grad():
        guide = logits(teacher)
    how = Distillation(Threshold(tau), WEIGHT)
    loss = token_losses(logits(student).flatten(0, 1), guide.flatten(0, 1), targets.flatten(), how).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach())


Side = Callable[[], tuple[float, Adapter]]
"""One step, from the same adapters and batch: () -> (loss, gradients)."""


def sides_of(case: Case, wanted: tuple[str, ...] = (OURS, THEIRS)) -> dict[str, Side]:
    made = case.model()
    config = made.config()
    rendered = batch(BATCH, case.source, TARGET, config.vocab_size, config.eos_token_id)
    start = init_adapter(made.layers(), config.hidden_size, case.bottleneck, 1)
    teacher = {name: tensor.to(case.device, case.dtype) for name, tensor in start.items()}
    generator = torch.Generator().manual_seed(2)
    moved = {name: t + 0.01 * torch.randn(t.shape, generator=generator) for name, t in start.items()}

    def student() -> Adapter:
        return {name: t.to(case.device, case.dtype, copy=True).requires_grad_() for name, t in moved.items()}

    makers = {
        OURS: lambda: _from_store(made.backbone(), rendered, case, student, teacher),
        THEIRS: lambda: _plainly(made.plain(), rendered, case, student, teacher),
    }
    return {name: makers[name]() for name in wanted}


def _from_store(
    backbone: Backbone, rendered: list[Rendered], case: Case, student: Callable[[], Adapter], teacher: Adapter
) -> Side:
    store = PrefixStore(Path(tempfile.mkdtemp(prefix="quorum-bench-")))
    atexit.register(shutil.rmtree, store.folder, ignore_errors=True)
    keys = [f"{number:064d}" for number in range(BATCH)]
    for key, item in zip(keys, rendered, strict=True):
        store.put(key, backbone.encode(item, for_generation=False)[0])

    def step() -> tuple[float, Adapter]:
        trained = student()
        prefixes = [{n: t.to(case.device) for n, t in prefix.items()} for prefix in store.training(keys)]
        return from_store(backbone, prefixes, trained, teacher, case.tau), _gradients(trained)

    return step


def _plainly(
    model: Any, rendered: list[Rendered], case: Case, student: Callable[[], Adapter], teacher: Adapter
) -> Side:
    logits = plain_logits(model, rendered, compiled=case.compiled)
    targets = torch.tensor([r.target for r in rendered], device=model.device)

    def step() -> tuple[float, Adapter]:
        trained = student()
        return plainly(logits, targets, trained, teacher, case.tau), _gradients(trained)

    return step


def _gradients(trained: Adapter) -> Adapter:
    return {name: tensor.grad for name, tensor in trained.items() if tensor.grad is not None}


def measure(name: str, repeats: int) -> list[Row]:
    case = CASES[name]
    what = f"a training step of AdaFedSelectKD, {name}, {case.source} source and {TARGET} target tokens, batch {BATCH}"
    against = f"{PLAINLY}, compiled" if case.compiled else PLAINLY
    of_memory = f"{what}: peak memory of the process"
    if case.device == "cuda" and not torch.cuda.is_available():
        return [Row(what, against, promised=case.faster, skipped="no GPU here")]
    if name == SMOLLM and not has_embedded():
        promises = ((what, case.faster), (of_memory, case.smaller))
        return [Row(missing, against, promised=promised, skipped=NO_EMBEDDED) for missing, promised in promises]
    sides = sides_of(case)
    seconds, results = interleaved(sides, repeats, settle=torch.cuda.synchronize if case.device == "cuda" else None)
    losses = {side: result[0] for side, result in results.items()}
    difference = disagreement({side: result[1] for side, result in results.items()})
    # bf16 keeps 8 bits of a number, of which the order of summation costs some.
    of_losses, of_gradients = (1e-4, 1e-2) if case.dtype == torch.float32 else (0.05, 0.2)
    if abs(losses[OURS] - losses[THEIRS]) > of_losses or difference > of_gradients:
        raise QuorumError(f"{name}: the two sides disagree: losses {losses}, gradients by {difference:.1e}")
    details: dict[str, Any] = {"losses": losses, "largest_relative_gradient_difference": difference}
    if case.device == "cuda":
        with FlopCounterMode(display=False) as counter:
            sides[OURS]()
        details["gpu"] = torch.cuda.get_device_name()
        details["flops_a_second"] = counter.get_total_flops() / seconds[OURS].median
        if "H200" in details["gpu"]:
            details["share_of_its_peak"] = details["flops_a_second"] / H200_BF16
    ratio = seconds[THEIRS].median / seconds[OURS].median
    faster = Row(what, against, ratio, case.faster, seconds[OURS], seconds[THEIRS], details=details)
    if case.device == "cuda":
        return [faster]
    memory = {side: _memory_of(name, side) for side in (OURS, THEIRS)}
    smaller = Row(
        of_memory,
        against,
        ratio=memory[THEIRS] / memory[OURS],
        promised=case.smaller,
        unit="MB",
        details=memory,
    )
    return [faster, smaller]


def disagreement(gradients: dict[str, Adapter]) -> float:
    """The largest difference of the two sides' gradients, relative to each tensor's largest entry."""
    return max(
        float((gradients[OURS][name] - theirs).abs().max() / theirs.abs().max())
        for name, theirs in gradients[THEIRS].items()
    )


def _memory_of(name: str, side: str) -> float:
    """Two steps of one side in a fresh process, and the most memory that it held."""
    command = [sys.executable, "-m", "benchmarks.training_step", name, side]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def rows(repeats: int) -> list[Row]:
    return [row for name in CASES for row in measure(name, repeats)]


if __name__ == "__main__":
    step_of = sides_of(CASES[sys.argv[1]], (sys.argv[2],))[sys.argv[2]]
    for _step in range(2):
        step_of()
    print(peak_memory())
