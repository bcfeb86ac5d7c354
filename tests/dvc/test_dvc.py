"""What the real `dvc` runs again, and what it leaves alone, in a workspace in which everything has run."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest
from conftest import Workspace
from labelled import EVERY
from workspaces import replace, stand_ins

TABLES = ("metrics.json", "metrics/all.json", "tables/methods-news.csv")
SECONDS = 5
"""Of the processor, for a `dvc repro` that runs nothing."""


@pytest.fixture(scope="module")
def still(built: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A copy for commands of dvc that leave everything as it is: two of them in one workspace would wait."""
    return built.copied(tmp_path_factory.mktemp("still") / "copy")


def test_the_second_repro_runs_nothing_and_is_quick(still: Workspace) -> None:
    """A `__pycache__` is no change."""
    for folder in ("pipeline", "data/own"):
        (still.folder / folder / "__pycache__").mkdir(parents=True, exist_ok=True)
        (still.folder / folder / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"new")
    before = os.times()
    assert still.repro() == []
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used < SECONDS


def test_a_run_needs_none_of_the_other_runs(copy: Workspace) -> None:
    for path in ("models/fedavg", "reports/predictions/names-ditto"):
        shutil.rmtree(copy.folder / path)
    assert copy.repro("evaluate@news-fedavg", "evaluate@fedselectkd") == []


def test_dvc_shows_metrics_a_column_a_run(still: Workspace) -> None:
    shown = still.run("dvc", "metrics", "show", "--md").stdout
    assert "fedselectkd.average" in shown
    assert "news-fedavg.accuracy" in shown


def test_pruning_everything_that_no_run_needs_makes_nothing_run_again(copy: Workspace) -> None:
    copy.call("prune", "--unplanned")
    assert copy.repro() == []


def test_a_new_algorithm_runs_the_plan_and_trains_nothing(copy: Workspace) -> None:
    folder = copy.folder / "pipeline" / "federated" / "algorithms"
    (folder / "fedmagic.py").write_text((folder / "fedavg.py").read_text(encoding="utf-8"), encoding="utf-8")
    line = "ALGORITHMS: dict[str, str] = {\n"
    magic = '    "AdaMagic": "pipeline.federated.algorithms.fedmagic",\n'
    replace(folder / "__init__.py", line, line + magic)
    assert copy.repro() == ["plan"]


def test_a_removed_run_leaves_every_table_and_nothing_is_trained(copy: Workspace) -> None:
    params = copy.read_params()
    copy.params(
        runs={name: row for name, row in params["runs"].items() if name != "news-head"},
        sections=params["sections"] | {"cuts": ["news-pooled", "news-lora"]},
    )
    copy.stage("plan")
    assert copy.outdated() == {"plan", "encode@news", "examples", "report"}
    with stand_ins():
        copy.stage("report")
    for path in TABLES:
        assert "news-head" not in (copy.folder / "reports" / path).read_text(encoding="utf-8"), path


DIVERGING = {"news-pooled": EVERY["runs"]["news-pooled"] | {"learning_rate": 1e30}}


@pytest.mark.parametrize(
    ("run", "changes", "why"),
    [
        ("fedavg", {"rates": EVERY["rates"] | {"server": 1e30}}, "; lower learning_rate, run again"),
        ("news-pooled", {"runs": EVERY["runs"] | DIVERGING}, "lower learning_rate"),
    ],
)
def test_a_training_that_fails_is_one_line_and_leaves_nothing_half_written(
    copy: Workspace, run: str, changes: dict[str, Any], why: str
) -> None:
    copy.params(**changes)
    copy.stage("plan")
    done = copy.run("dvc", "repro", "--single-item", f"train@{run}", ok=False)
    assert done.returncode != 0
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert why in error
    assert "Traceback" not in done.stderr
    assert not (copy.folder / "models" / run / "1").exists()
    assert not list(copy.folder.rglob("*.tmp"))
