"""One training step of AdaFedSelectKD from the prefix store, against the same step written the obvious way.

The obvious way is `plain_step.py`. Logits and adapters are computed where a target is predicted and nowhere else. Both
sides give the same numbers, which is checked. A step is loss and gradients here: clipping and AdamW, the same few
milliseconds on both sides, are left out. The peak memory of each side is taken in a process of its own. In bf16 the
other side has all of its model and adapters in bf16 and the loss in fp32; where `torch.compile` is faster, compiled.
"""

import atexit
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.backbones import NO_EMBEDDED, Model, bart, embedded, has_embedded
from benchmarks.comparison import OURS, THEIRS, Row, interleaved, peak_memory
from benchmarks.plain_step import plain_logits, plainly
from pipeline.errors import QuorumError
from pipeline.federated.head import backward_through_head
from pipeline.federated.objectives.distillation import Distillation
from pipeline.federated.objectives.threshold import Threshold
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.model.backbone import Backbone, Rendered, targets_of
from pipeline.model.frozen_linear import DTYPES
from pipeline.model.precision import Precision, multiplies_bf16
from pipeline.model.store import PrefixStore

TAU, RANDOM_TAU, WEIGHT = 5.0, 20.0, 0.2
BATCH, TARGET = 16, 80
PLAINLY = "the same step written plainly with transformers"


@dataclass(frozen=True)
class Side:
    """Who takes the step, and in what; `compiled`: through `torch.compile`."""

    who: str
    precision: Precision
    compiled: bool = False

    def __str__(self) -> str:
        return f"{self.who}, {self.precision}" + (", compiled" if self.compiled else "")


@dataclass(frozen=True)
class Aim:
    """Two sides of a row, and how many times faster and smaller ours has to be."""

    ours: Precision
    theirs: Precision
    faster: float | None
    smaller: float | None = None


@dataclass(frozen=True)
class Case:
    """A model, what it reads, its adapters' inner width, and its rows.

    `compiled`: the other side in bf16 is timed through `torch.compile`, too. `tau`: random weights are sure of nothing,
    so a threshold that distils something is a high one.
    """

    model: Callable[[], Model]
    source: int
    bottleneck: int
    aims: tuple[Aim, ...]
    tau: float = TAU
    device: str = "cpu"
    compiled: bool = False

    def objective(self) -> Distillation:
        return Distillation(Threshold(self.tau), WEIGHT)

    def sides(self) -> list[Side]:
        """All that its rows name, each once."""
        found = [side for aim in self.aims for side in (Side(OURS, aim.ours), Side(THEIRS, aim.theirs))]
        if self.compiled:
            found += [Side(THEIRS, aim.theirs, compiled=True) for aim in self.aims if aim.theirs == "bf16"]
        return list(dict.fromkeys(found))


SMOLLM = "SmolLM2-135M-Instruct"
SMOLLM_GPU = f"{SMOLLM} on a GPU"
GPU = "BART-large's shape in bf16 on a GPU"
COMPILES = shutil.which("g++") is not None
CASES = {
    SMOLLM: Case(
        embedded,
        448,
        1152,
        (Aim("bf16", "fp32", 20.0, 3.0), Aim("fp32", "fp32", None, 1.8), Aim("bf16", "bf16", 6.0)),
        compiled=COMPILES,
    ),
    "BART-base's shape": Case(lambda: bart(768), 1024, 1536, (Aim("bf16", "fp32", 5.0),), tau=RANDOM_TAU),
    GPU: Case(
        lambda: bart(1024, 12, "cuda"),
        1024,
        2048,
        (Aim("bf16", "bf16", 4.0),),
        tau=RANDOM_TAU,
        device="cuda",
        compiled=True,
    ),
    SMOLLM_GPU: Case(lambda: embedded("cuda"), 1024, 1152, (Aim("bf16", "bf16", None),), device="cuda", compiled=True),
}


def batch(size: int, source: int, target: int, vocabulary: int, end: int) -> list[Rendered]:
    """Random tokens of full length: the store's advantage does not depend on what they say."""
    generator = torch.Generator().manual_seed(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, min(vocabulary, 250), (count,), generator=generator).tolist())

    return [Rendered(ids(source), (*ids(target - 1), end), source, source) for _ in range(size)]


Step = Callable[[], tuple[float, Adapter]]
"""One step, from the same adapters and batch: () -> (loss, gradients)."""


def step_of(case: Case, side: Side) -> Step:
    made = case.model()
    config = made.config()
    rendered = batch(BATCH, case.source, TARGET, config.vocab_size, config.eos_token_id)
    first = init_adapter(made.layers(), config.hidden_size, case.bottleneck, 1)
    generator = torch.Generator().manual_seed(2)
    moved = {name: t + 0.01 * torch.randn(t.shape, generator=generator) for name, t in first.items()}
    if side.who == OURS:
        adapters = Adapters(moved, first, case.device, torch.float32)
        return _from_store(made.backbone(side.precision), rendered, case, adapters)
    dtype = DTYPES[side.precision]
    logits = plain_logits(made.plain(dtype), rendered, compiled=side.compiled)
    return _plainly(logits, rendered, case, Adapters(moved, first, case.device, dtype))


@dataclass(frozen=True)
class Adapters:
    """The student's and the teacher's, where and as a side computes with them."""

    moved: Adapter
    first: Adapter
    device: str
    dtype: torch.dtype

    def student(self) -> Adapter:
        return {name: t.to(self.device, self.dtype, copy=True).requires_grad_() for name, t in self.moved.items()}

    def teacher(self) -> Adapter:
        return {name: tensor.to(self.device, self.dtype) for name, tensor in self.first.items()}


def _from_store(backbone: Backbone, rendered: list[Rendered], case: Case, adapters: Adapters) -> Step:
    store = PrefixStore(Path(tempfile.mkdtemp(prefix="quorum-bench-")))
    atexit.register(shutil.rmtree, store.folder, ignore_errors=True)
    keys = [f"{number:064d}" for number in range(BATCH)]
    for key, item in zip(keys, rendered, strict=True):
        store.put(key, backbone.encode(item, for_generation=False)[0])
    teacher = adapters.teacher()

    def step() -> tuple[float, Adapter]:
        trained = adapters.student()
        prefixes = [{n: t.to(case.device) for n, t in prefix.items()} for prefix in store.training(keys)]
        hidden = backbone.target_hidden(prefixes, trained)
        with torch.no_grad():
            guide = backbone.target_hidden(prefixes, teacher)
        losses = backward_through_head(backbone.head, hidden, targets_of(prefixes), case.objective(), guide)
        return float(losses.loss.mean()), _gradients(trained)

    return step


def _plainly(
    logits: Callable[[Adapter], torch.Tensor], rendered: list[Rendered], case: Case, adapters: Adapters
) -> Step:
    targets = torch.tensor([r.target for r in rendered], device=case.device)
    teacher = adapters.teacher()

    def step() -> tuple[float, Adapter]:
        trained = adapters.student()
        return plainly(logits, targets, trained, teacher, case.objective()), _gradients(trained)

    return step


def _gradients(trained: Adapter) -> Adapter:
    return {name: tensor.grad for name, tensor in trained.items() if tensor.grad is not None}


def measure(name: str, repeats: int) -> list[Row]:
    case = CASES[name]
    what = f"a training step of AdaFedSelectKD, {name}, {case.source} source and {TARGET} target tokens, batch {BATCH}"
    missing = _missing(name)
    if missing:
        return [row for aim in case.aims for row in _skipped(what, aim, missing)]
    steps = {str(side): step_of(case, side) for side in case.sides()}
    settle = torch.cuda.synchronize if case.device == "cuda" else None
    seconds, results = interleaved(steps, repeats, settle=settle)
    found: list[Row] = []
    for aim in case.aims:
        ours, plain = Side(OURS, aim.ours), [s for s in case.sides() if (s.who, s.precision) == (THEIRS, aim.theirs)]
        theirs = min(plain, key=lambda side: seconds[str(side)].median)
        agreement = _agreement(name, results[str(ours)], results[str(theirs)], exact=aim.ours == aim.theirs == "fp32")
        ratio = seconds[str(theirs)].median / seconds[str(ours)].median
        details = {**agreement, **{str(side): seconds[str(side)].median for side in plain}}
        if case.device == "cuda":
            details |= {"gpu": torch.cuda.get_device_name()}
        sides = seconds[str(ours)], seconds[str(theirs)]
        found.append(Row(_named(what, aim), _against(aim, theirs), ratio, aim.faster, *sides, details=details))
        if aim.smaller is not None:
            memory = {who: _memory_of(name, side) for who, side in ((OURS, ours), (THEIRS, theirs))}
            smaller = memory[THEIRS] / memory[OURS]
            of_memory = f"{_named(what, aim)}: peak memory of the process"
            found.append(Row(of_memory, _against(aim, theirs), smaller, aim.smaller, unit="MB", details=memory))
    return found


def _missing(name: str) -> str | None:
    if CASES[name].device == "cuda" and not torch.cuda.is_available():
        return "no GPU here"
    if name in (SMOLLM, SMOLLM_GPU) and not has_embedded():
        return NO_EMBEDDED
    if any("bf16" in (aim.ours, aim.theirs) for aim in CASES[name].aims) and not multiplies_bf16(CASES[name].device):
        return "this machine does not multiply bf16 natively"
    return None


def _skipped(what: str, aim: Aim, why: str) -> list[Row]:
    rows = [Row(_named(what, aim), _against(aim), promised=aim.faster, skipped=why)]
    of_memory = f"{_named(what, aim)}: peak memory of the process"
    more = [Row(of_memory, _against(aim), promised=aim.smaller, skipped=why)] if aim.smaller is not None else []
    return rows + more


def _named(what: str, aim: Aim) -> str:
    return f"{what}, {aim.ours}"


def _against(aim: Aim, side: Side | None = None) -> str:
    return f"{PLAINLY} in {aim.theirs}" + (", compiled" if side is not None and side.compiled else "")


def _agreement(name: str, ours: tuple[float, Adapter], theirs: tuple[float, Adapter], *, exact: bool) -> dict[str, Any]:
    """How far the two sides' losses and gradients are apart; bf16 keeps 8 bits of a number.

    Raises:
        QuorumError: further than that.
    """
    difference = disagreement({OURS: ours[1], THEIRS: theirs[1]})
    of_losses, of_gradients = (1e-4, 1e-2) if exact else (0.05, 0.2)
    losses = {OURS: ours[0], THEIRS: theirs[0]}
    if abs(ours[0] - theirs[0]) > of_losses or difference > of_gradients:
        raise QuorumError(f"{name}: the two sides disagree: losses {losses}, gradients by {difference:.1e}")
    return {"losses": losses, "largest_relative_gradient_difference": difference}


def disagreement(gradients: dict[str, Adapter]) -> float:
    """The largest difference of the two sides' gradients, relative to each tensor's largest entry."""
    return max(
        float((gradients[OURS][name] - theirs).abs().max() / theirs.abs().max())
        for name, theirs in gradients[THEIRS].items()
    )


def _memory_of(name: str, side: Side) -> float:
    """Two steps of one side in a fresh process, and the most memory that it held."""
    asked = [name, side.who, side.precision, *(["compiled"] if side.compiled else [])]
    command = [sys.executable, "-m", "benchmarks.training_step", *asked]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def rows(repeats: int) -> list[Row]:
    return [row for name in CASES for row in measure(name, repeats)]


if __name__ == "__main__":
    asked, whose, of = sys.argv[1:4]
    taken = step_of(CASES[asked], Side(whose, "bf16" if of == "bf16" else "fp32", compiled=len(sys.argv) > 4))
    for _step in range(2):
        taken()
    print(peak_memory())
