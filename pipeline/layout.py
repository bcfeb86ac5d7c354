"""Where everything lies. No other module spells a path of the project.

Paths that DVC tracks are relative to the workspace that a stage runs in. State that outlives a stage
(`work/`, the MLflow store, the mirror) is anchored at `DVC_ROOT`: in `dvc exp run --temp` and in queued
experiments the workspace is a temporary copy, and what lay in it would be lost.
"""

from __future__ import annotations

import os
from pathlib import Path

PARAMS = Path("params.yaml")
SAMPLE = Path("data/sample")
PAPER_RESULTS = Path("data/paper_results.csv")
OWN = Path("data/own")

PLAN = Path("data/plan")
RAW = Path("data/raw")
PREPARED = Path("data/prepared")
PARTITIONS = Path("data/partitions")
ENCODED = Path("data/encoded")

MODELS = Path("models")
BACKBONE = MODELS / "backbone"
ABOUT_BACKBONE = "quorum.json"
"""Beside the weights in a backbone's folder: their name and digest."""

REPORTS = Path("reports")
PREDICTIONS = REPORTS / "predictions"
SCORES = REPORTS / "scores"
LENS = REPORTS / "lens"
TABLES = REPORTS / "tables"
FIGURES = REPORTS / "figures"
METRICS = REPORTS / "metrics.json"
SEED_METRICS = REPORTS / "metrics"
REPORT = REPORTS / "report.html"


def home() -> Path:
    """The real repository, also from inside an experiment's temporary copy of it."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd()).resolve()


def work() -> Path:
    """Git-ignored state that outlives a stage: the prefix store, checkpoints, timings, downloads."""
    return home() / "work"


def store() -> Path:
    return work() / "store"


def checkpoints() -> Path:
    return work() / "checkpoints"


def generated() -> Path:
    return work() / "generated"


def evaluated() -> Path:
    return work() / "evaluated"


def timings() -> Path:
    return work() / "timings"


def downloads() -> Path:
    return work() / "downloads"


def mirror() -> Path | None:
    """The folder of real corpora: `QUORUM_MIRROR`, else `../shared/corpora` where it exists."""
    named = os.environ.get("QUORUM_MIRROR")
    if named is not None:
        return Path(named) if named else None
    beside = home().parent / "shared" / "corpora"
    return beside if beside.is_dir() else None


def mlflow_uri() -> str:
    return f"sqlite:///{home() / 'mlflow.db'}"


def mlflow_artifacts() -> Path:
    return home() / "mlartifacts"


def stage_spec(stage: str, run: str | None = None) -> Path:
    """`data/plan/<stage>.json`, or `data/plan/<stage>/<run>.json` for a stage of a run."""
    return PLAN / f"{stage}.json" if run is None else PLAN / stage / f"{run}.json"


def run_id(name: str, seed: int) -> str:
    """The name of one run at one seed, as in DVC's stage names: `fedselectkd-1`."""
    return f"{name}-{seed}"


def encoded_index(run: str) -> Path:
    return ENCODED / f"{run}.json"


def manifest(setting: str, seed: int) -> Path:
    return PARTITIONS / f"{setting}-{seed}.json"


def adapters(run: str) -> Path:
    return MODELS / run / "adapters"


def predictions(run: str) -> Path:
    return PREDICTIONS / f"{run}.jsonl"
