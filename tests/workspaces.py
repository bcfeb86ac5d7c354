"""Workspaces in which the pipeline runs: laid out like a clone, made in this process, copied for the price of links."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import torch
import yaml
from matplotlib.figure import Figure
from torch import Tensor

from pipeline import __main__ as command_line
from pipeline.model.precision import Precision
from pipeline.plan.checks import read_params
from pipeline.runs import analysis
from pipeline.tasks import similarity

ROOT = Path(__file__).parents[1]
LINKED = ("data/", "models/", "reports/", "work/", "mlartifacts/", ".dvc/cache/", ".git/objects/")
"""Nothing below these is written in place: a copy can share their files."""
LEFT_OUT = ("results/", ".ci/", "benchmarks/", "deploy/", "docs/", "dvc.lock", "experiments/", "reports/", "tests/")
"""What no stage of the root reads. DVC would read every experiment's stages at each start."""
TABLE = "experiments/full/reports/tables/comparisons.csv"
NO_TOUR = {"quoted: reports/predictions": "quoted: LICENSE", f"shown: {TABLE}": "shown: CITATION.cff"}
"""The variables of dvc.yaml, as experiments have them."""
IDENTITY = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def replace(path: Path, old: str, new: str) -> None:
    """Replace a piece of a file, which has it."""
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path}: {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def as_yaml(params: Mapping[str, Any]) -> str:
    """The text of a params.yaml, without anchors for values that occur twice."""
    plain = type("Plain", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    return yaml.dump(params, Dumper=plain, sort_keys=False)


class Workspace:
    """A clone of the project as a stranger has it, with its own params.yaml."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = os.environ | IDENTITY | {"QUORUM_MIRROR": "", "OMP_NUM_THREADS": "1"}
        self.env |= dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull)
        self.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env.pop("DVC_ROOT", None)
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles the pipeline

    @classmethod
    def laid(cls, folder: Path, **params: Any) -> Workspace:
        """A new one, under git."""
        command = ["git", "ls-files", "-co", "--exclude-standard"]
        files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
        for name in files:
            if (ROOT / name).is_file() and not name.startswith(LEFT_OUT):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for tour, other in NO_TOUR.items():
            replace(folder / "dvc.yaml", tour, other)
        workspace = cls(folder)
        workspace.params(**params)
        workspace.run("git", "init", "-q")
        workspace.commit()
        return workspace

    def copied(self, folder: Path, *, linked: bool = True) -> Workspace:
        """A copy to change: it shares the files that nobody writes in place, unless it is on another disk."""

        def put(source: str, target: str) -> None:
            shared = linked and str(Path(source).relative_to(self.folder)).startswith(LINKED)
            (os.link if shared else shutil.copy2)(source, target)

        shutil.copytree(self.folder, folder, symlinks=True, copy_function=put)
        return Workspace(folder)

    def commit(self) -> None:
        """Everything that git does not ignore."""
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", "as it is")

    def run(self, *command: str, ok: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        """A command, which must succeed if `ok`; `env`: more of its environment."""
        done = subprocess.run(command, cwd=self.folder, env=self.env | env, capture_output=True, text=True)
        assert not (ok and done.returncode), f"{command} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def repro(self, *arguments: str) -> list[str]:
        """`dvc repro`; the names of the stages that ran."""
        return stages_run(self.run("dvc", "repro", *arguments).stdout)

    def outdated(self, *targets: str) -> set[str]:
        """The stages behind these targets for which `dvc status` finds a change; those behind them are not in it."""
        return set(json.loads(self.run("dvc", "status", "--json", "--with-deps", *targets).stdout))

    def logged(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows from MLflow's database."""
        with closing(sqlite3.connect(self.folder / "mlflow.db", timeout=30)) as store:
            return list(store.execute(query, values))

    def pipeline(self, *arguments: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """A command in a process of its own."""
        return self.run(sys.executable, "-m", "pipeline", *arguments, ok=ok)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """As long as it lasts, this process works there."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.setenv("QUORUM_MIRROR", "")
            patch.delenv("DVC_ROOT", raising=False)
            yield

    def call(self, *arguments: str) -> None:
        """A command in this process, which imports torch once for all of them."""
        with self.entered():
            command_line.app(list(arguments), standalone_mode=False)

    def stage(self, name: str, *arguments: str) -> None:
        """A stage in this process; a training is not logged."""
        with self.entered():
            importlib.import_module(f"pipeline.stages.{name}").run(*arguments)

    def make_until(self, last: str) -> None:
        """All stages up to this one, in this process."""
        with self.entered():
            params = read_params()
        self.stage("plan")
        of_data = ("ingest", params.sources), ("prepare", params.data), ("backbone", params.backbones)
        of_settings = ("partition", params.settings), ("encode", params.settings)
        of_runs = ("train", params.runs), ("predict", params.runs), ("evaluate", params.runs)
        for stage, items in (*of_data, *of_settings, *of_runs):
            for item in items:
                self.stage(stage, item)
            if stage == last:
                return
        for page in ("analyze", "examples", "report"):
            self.stage(page)

    def make(self) -> None:
        """All stages, in this process; see `stand_ins`."""
        with stand_ins():
            self.make_until("report")

    def make_apart(self) -> None:
        """The same in another process, which imports the workspace's own code."""
        code = "from pathlib import Path; from workspaces import Workspace; Workspace(Path.cwd()).make()"
        self.run(sys.executable, "-c", code, PYTHONPATH=str(ROOT / "tests"))

    def read_params(self) -> dict[str, Any]:
        params: dict[str, Any] = yaml.safe_load((self.folder / "params.yaml").read_text(encoding="utf-8"))
        return params

    def params(self, **changes: Any) -> None:
        """Set keys of params.yaml; None removes one."""
        known = self.read_params() | changes
        self.write_params({key: value for key, value in known.items() if value is not None})

    def write_params(self, params: dict[str, Any]) -> None:
        (self.folder / "params.yaml").write_text(as_yaml(params), encoding="utf-8")


@contextmanager
def stand_ins() -> Iterator[None]:
    """Within it, saved figures are blank, and vectors of hashes are in place of sentence embeddings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", _save_blank)
        patch.setattr(similarity, "embed", _embed_hash)
        patch.setattr(analysis, "embed", _embed_hash)
        yield


def _save_blank(_: Figure, path: Path, format: str, **__: Any) -> None:
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg"/>' if format == "svg" else "", encoding="utf-8")


def _embed_hash(texts: Sequence[str], precision: Precision = "fp32") -> Tensor:
    """Unit vectors (texts, 384): equal for equal texts, and at random otherwise."""
    drawn = [torch.randn(384, generator=torch.Generator().manual_seed(crc32(text.encode()))) for text in texts]
    return torch.nn.functional.normalize(torch.stack(drawn), dim=1)


def files_of(folder: Path) -> dict[str, bytes]:
    """Path below the folder -> content, of all files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def stages_run(output: str) -> list[str]:
    """Those that `dvc repro` says it runs."""
    return [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage '")]


DOMAINS = ["Academic", "Committee", "Product"]
MAIN = {
    "zeroshot": {"setting": "domains", "method": "ZeroShot"},
    "fedavg": {"setting": "domains", "method": "AdaFedAvg"},
    "fedavg-local": {"setting": "domains", "method": "AdaFedAvg", "evaluate": "local"},
    "fedselectkd": {"setting": "domains", "method": "AdaFedSelectKD"},
}
SMALL: dict[str, Any] = (
    {"page": "main", "scale": "small", "seeds": [1], "device": "cpu", "precision": "fp32", "sign_flips": 200}
    | {"sources": ["qmsum"], "data_source": "sample", "data": {"qmsum": {"task": "summarize", "source": "qmsum"}}}
    | {"backbones": ["tiny-llama"], "backbone": "tiny-llama", "train_fraction": 0.2, "validation_examples": 2}
    | {"source_tokens": 300, "target_tokens": 60, "max_tokens": 12, "rounds": 2, "added_rounds": 2, "batch_size": 4}
    | {"rates": dict.fromkeys(("own", "local", "server", "pooled"), 0.0006), "tau": 5.0, "lambda": 0.2}
    | {"settings": {"domains": {"data": "qmsum", "kind": "domains", "clients": DOMAINS}}}
    | {"runs": MAIN, "sections": {"main": [*MAIN]}}
)
"""The main table alone, in seconds."""

QUERY = "Summarize the whole meeting."
OTHERS = ("samsum", "ami", "icsi")
BOTH: dict[str, Any] = SMALL | {
    "page": "paper",
    "sources": ["qmsum", *OTHERS],
    "data": SMALL["data"] | {name: {"task": "summarize", "source": name, "query": QUERY} for name in OTHERS},
    "settings": {
        **SMALL["settings"],
        "iid": {"data": "qmsum", "kind": "iid", "clients": ["First", "Second", "Third"], "of": DOMAINS},
        "balanced": {"data": "qmsum", "kind": "balanced", "clients": ["Academic", "Product"]}
        | {"counts": {"train": 4, "val": 2, "test": 3}},
        "extreme": {"data": ["qmsum", "samsum"], "kind": "domains", "clients": ["Academic", "SAMSum"]}
        | {"only": {"SAMSum": {"train_fraction": 0.5, "test_examples": 2}}},
        "long": {"data": ["ami", "icsi"], "kind": "domains", "clients": ["AMI", "ICSI"], "train_fraction": 1.0}
        | {"source_tokens": 500, "target_tokens": 90, "max_tokens": 20},
    },
    "runs": {
        **MAIN,
        "fedavg-base": {"setting": "domains", "method": "AdaFedAvg", "decode": False},
        "scaffold": {"setting": "domains", "method": "SCAFFOLD", "decode": False, "clients_per_round": 2},
        "fedhardkd": {"setting": "domains", "method": "AdaFedHardKD"},
        "fedselectkd-iid": {"setting": "iid", "method": "AdaFedSelectKD"},
        "fedavg-iid": {"setting": "iid", "method": "AdaFedAvg"},
        "fedselectkd-balanced": {"setting": "balanced", "method": "AdaFedSelectKD", "tau": "q0.88"},
        "fedselectkd-post": {"setting": "extreme", "method": "AdaFedSelectKD", "prolonged": True, "late": ["SAMSum"]},
        "fedavg-long": {"setting": "long", "method": "AdaFedAvg"},
        "deep": {"setting": "domains", "method": "AdaSingle", "adapted_layers": 15, "decode": False},
    },
    "sections": {"main": [*MAIN], "algorithms": ["fedavg-base", "scaffold"], "iid": ["fedavg-iid", "fedselectkd-iid"]}
    | {"addition": ["fedselectkd-post"], "uncached": ["deep"], "mine": ["fedavg-iid", "fedselectkd-iid"]},
}
"""The main table and nine runs beyond it, one of which the backbone cannot make."""
