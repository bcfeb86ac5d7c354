"""One training step of AdaFedSelectKD from the prefix store, against the same step written the obvious way.

The obvious way: transformers' own full forward of source and target, adapters as modules on the top layers by hooks,
once without gradient for the teacher and once for the student, full logits, one backward pass; the same numbers, which
is checked. The two sides' peak memory is taken in a process of its own each.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.backbones import NO_EMBEDDED, bart, embedded, has_embedded
from benchmarks.comparison import OURS, THEIRS, Row, interleaved, peak_memory
from pipeline.errors import QuorumError
from pipeline.federated.distillation import Distillation, selective_kd_loss
from pipeline.federated.head import backward_through_head
from pipeline.model.adapter import Adapter, adapting, attached, init_adapter
from pipeline.model.backbone import Backbone, Rendered, targets_of
from pipeline.model.store import PrefixStore

TAU, WEIGHT = 5.0, 0.2
BATCH, TARGET = 16, 80
PLAINLY = "the same step written plainly with transformers"


SHAPES: dict[str, tuple[Callable[[], Backbone], int, int, float]] = {
    "SmolLM2-135M-Instruct": (embedded, 448, 1152, 12.0),
    "BART-base's shape": (lambda: bart(768), 1024, 1536, 5.0),
}
"""Name -> (the backbone, source tokens, the adapters' inner width, how many times faster it has to be)."""


def batch(size: int, source: int, target: int, vocabulary: int, end: int) -> list[Rendered]:
    """Random tokens of full length: the store's advantage does not depend on what they say."""
    generator = torch.Generator().manual_seed(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, min(vocabulary, 250), (count,), generator=generator).tolist())

    return [Rendered(ids(source), (*ids(target - 1), end), source, source) for _ in range(size)]


def from_store(backbone: Backbone, prefixes: list[Any], student: Adapter, teacher: Adapter) -> float:
    targets = targets_of(prefixes)
    hidden = backbone.target_hidden(prefixes, student)
    with torch.no_grad():
        guide = backbone.target_hidden(prefixes, teacher)
    losses = backward_through_head(backbone.head, hidden, targets, guide, Distillation(TAU, WEIGHT))
    return float(losses.loss.mean())


def plainly(backbone: Any, rendered: list[Rendered], student: Adapter, teacher: Adapter) -> float:
    """Full forward of equal-length sources and targets in one batch, twice; full logits."""
    model = backbone.model
    targets = torch.tensor([r.target for r in rendered])
    if backbone.family == "causal":
        ids = torch.tensor([r.source + r.target[:-1] for r in rendered])
        start = len(rendered[0].source) - 1
        where = (torch.arange(ids.shape[1])[None] >= start).expand(ids.shape[0], -1)

        def logits(adapter: Adapter) -> torch.Tensor:
            with attached(backbone._layers, adapting(adapter, post_norm=False, where=where)):
                return model(ids, use_cache=False).logits[:, start:]
    else:
        sources = torch.tensor([r.source for r in rendered])

        def logits(adapter: Adapter) -> torch.Tensor:
            with attached(backbone._layers, adapting(adapter, post_norm=True)):
                return model(sources, labels=targets, use_cache=False).logits

    with torch.no_grad():
        guide = logits(teacher)
    loss, _ = selective_kd_loss(logits(student), guide, targets, tau=TAU, weight=WEIGHT)
    loss.backward()
    return float(loss.detach())


def sides_of(name: str) -> tuple[Backbone, dict[str, Callable[[], tuple[float, Adapter]]]]:
    """Each side: () -> (loss, gradients), from the same adapters and batch."""
    make, source, bottleneck, _ = SHAPES[name]
    backbone = make()
    rendered = batch(BATCH, source, TARGET, backbone.vocabulary, backbone.end_token)
    teacher = init_adapter(backbone.adapted_layers, backbone.width, bottleneck, 1)
    store = PrefixStore(Path(tempfile.mkdtemp(prefix="quorum-bench-")))
    atexit.register(shutil.rmtree, store.folder, ignore_errors=True)
    keys = [f"{number:064d}" for number in range(BATCH)]

    def student() -> Adapter:
        generator = torch.Generator().manual_seed(2)
        return {k: (t + 0.01 * torch.randn(t.shape, generator=generator)).requires_grad_() for k, t in teacher.items()}

    def ours() -> tuple[float, Adapter]:
        if not store.has(keys[-1], for_generation=False):
            for key, item in zip(keys, rendered, strict=True):
                store.put(key, backbone.encode(item, for_generation=False)[0])
        trained = student()
        loss = from_store(backbone, store.training(keys), trained, teacher)
        return loss, {k: t.grad for k, t in trained.items() if t.grad is not None}

    def theirs() -> tuple[float, Adapter]:
        trained = student()
        loss = plainly(backbone, rendered, trained, teacher)
        return loss, {k: t.grad for k, t in trained.items() if t.grad is not None}

    return backbone, {OURS: ours, THEIRS: theirs}


def measure(name: str, repeats: int) -> list[Row]:
    _, source, _, promised = SHAPES[name]
    what = f"a training step of AdaFedSelectKD, {name}, {source} source and {TARGET} target tokens, batch {BATCH}"
    if name == "SmolLM2-135M-Instruct" and not has_embedded():
        return [Row(what, PLAINLY, promised=promised, skipped=NO_EMBEDDED)]
    _, sides = sides_of(name)
    seconds, results = interleaved(sides, repeats)
    gradients = {side: result[1] for side, result in results.items()}
    difference = max(float((gradients[OURS][k] - g).abs().max() / g.abs().max()) for k, g in gradients[THEIRS].items())
    losses = [result[0] for result in results.values()]
    if abs(losses[0] - losses[1]) > 1e-4 or difference > 1e-2:
        raise QuorumError(f"{name}: the two sides disagree: losses {losses}, gradients by {difference:.1e}")
    memory = {side: _memory_of(name, side) for side in (OURS, THEIRS)}
    return [
        Row(
            what,
            PLAINLY,
            ratio=seconds[THEIRS].median / seconds[OURS].median,
            promised=promised,
            ours=seconds[OURS],
            theirs=seconds[THEIRS],
            details={
                "losses": {side: result[0] for side, result in results.items()},
                "largest_relative_gradient_difference": difference,
            },
        ),
        Row(
            f"{what}: peak memory of the process",
            PLAINLY,
            ratio=memory[THEIRS] / memory[OURS],
            promised=3.0,
            unit="MB",
            details={"ours": memory[OURS], "theirs": memory[THEIRS]},
        ),
    ]


def _memory_of(name: str, side: str) -> float:
    """Two steps of one side in a fresh process, and the most memory that it held."""
    command = [sys.executable, "-m", "benchmarks.training_step", name, side]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def rows(repeats: int) -> list[Row]:
    return [row for name in SHAPES for row in measure(name, repeats)]


if __name__ == "__main__":
    _backbone, both = sides_of(sys.argv[1])
    for _step in range(2):
        both[sys.argv[2]]()
    print(peak_memory())
