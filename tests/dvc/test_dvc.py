"""What the real `dvc` runs again, and what it leaves alone, in a workspace in which everything has run."""

import os
import shutil

import pytest
from conftest import Workspace
from labelled import EVERY
from workspaces import stand_ins

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


def test_a_training_that_fails_is_one_line_and_leaves_nothing_half_written(copy: Workspace) -> None:
    copy.params(rates=EVERY["rates"] | {"server": 1e30})
    copy.stage("plan")
    done = copy.run("dvc", "repro", "--single-item", "train@fedavg", ok=False)
    assert done.returncode != 0
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "; lower learning_rate, run again" in error
    assert "Traceback" not in done.stderr
    assert not (copy.folder / "models/fedavg/1").exists()
    assert not list(copy.folder.rglob("*.tmp"))
