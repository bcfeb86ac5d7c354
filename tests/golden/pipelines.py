"""The tiny pipelines that are hashed: each experiment as it is committed, but for its size."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
import labelled
from workspaces import BOTH, SMALL, Workspace

from pipeline.plan.reading import read_scales

ROOT = Path(__file__).parents[2]
SIZES = ("seeds", "setting", "adapted_layers")
"""What the tiny pipelines leave out of the runs of an experiment."""


def _runs(experiment: str) -> dict[str, dict[str, Any]]:
    chosen, scales, _ = read_scales(ROOT / "experiments" / experiment / "params.yaml")
    runs: dict[str, dict[str, Any]] = scales[chosen]["runs"]
    return runs


def laid(folder: Path) -> dict[str, Workspace]:
    """Every kind of run on meetings; the runs of `full` and `ablations`; every task and federation; the faults."""
    samsum = {"samsum": BOTH["data"]["samsum"] | {"query": "Summarize the conversation."}}
    found = {"root": Workspace.laid(folder / "root", **BOTH | {"data": BOTH["data"] | samsum})}
    for name in ("full", "ablations"):
        kept = {run: {k: v for k, v in knobs.items() if k not in SIZES} for run, knobs in _runs(name).items()}
        runs = {run: {"setting": "domains"} | knobs for run, knobs in kept.items()}
        found[name] = Workspace.laid(folder / name, **SMALL | {"seeds": [11], "runs": runs | SMALL["runs"]})
    found["texts"] = labelled.laid(folder / "texts")
    many = {"data": "news", "kind": "skewed", "clients": 12}
    faults = {"sources": ["20news"], "backbones": ["tiny-bert"], "data": {"news": labelled.TASKS["news"]}}
    faults |= {"settings": {"many": many, "ten": many | {"clients": 10, "alpha": 100.0}}}
    faults |= {"runs": {name: knobs | {"rounds": 2, "seeds": [1]} for name, knobs in _runs("faults").items()}}
    found["faults"] = labelled.laid(folder / "faults", **faults, sections={}, scales={"laptop": {}})
    return found
