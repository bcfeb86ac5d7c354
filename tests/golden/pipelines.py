"""The tiny pipelines that are hashed: each experiment as it is committed, but for its size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "dvc")]
from workspaces import BOTH, SMALL, Workspace

ROOT = Path(__file__).parents[2]


def _experiment(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "experiments" / name / "params.yaml").read_text(encoding="utf-8")))


def on_meetings(folder: Path) -> dict[str, Workspace]:
    """The root with runs of every kind; and the runs of `full` and `ablations`, each once."""
    found = {"root": Workspace.laid(folder / "root", **BOTH)}
    for name in ("full", "ablations"):
        own = _experiment(name)
        runs = {
            run: {k: v for k, v in knobs.items() if k not in ("seeds", "setting", "adapted_layers")}
            for run, knobs in (own["runs"] | own["more_runs"]).items()
        }
        two = {
            "seeds": [11],
            "folds": {},
            "rounds": 2,
            "runs": SMALL["runs"],
            "more_runs": {k: v for k, v in runs.items() if k not in SMALL["runs"]},
        }
        found[name] = Workspace.laid(folder / name, **SMALL | two)
    for workspace in found.values():
        workspace.make("main", "more")
    return found


def on_texts(folder: Path) -> dict[str, Workspace]:
    """Every task, every kind of federation; and the faults, at one seed."""
    from test_on_texts import PLAIN, TASKS, laid, make

    found = {"texts": laid(folder / "texts")}
    own = _experiment("faults")
    runs = {run: knobs | {"rounds": 2, "seeds": [1]} for run, knobs in own["runs"].items()}
    settings = {
        "many": {"data": "news", "kind": "skewed", "clients": 12},
        "ten": {"data": "news", "kind": "skewed", "clients": 10, "alpha": 100.0},
    }
    tables: dict[str, list[str]] = {name: [] for name in PLAIN["tables"]}
    more = {
        "datasets": {"news": TASKS["news"]},
        "settings": settings,
        "runs": runs,
        "tables": tables,
        "backbones": ["tiny-bert"],
        "clients_per_round": 10,
    }
    found["faults"] = laid(folder / "faults", **more)
    for workspace in found.values():
        make(workspace)
    return found
