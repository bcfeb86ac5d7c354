"""What the real `dvc` runs again, and what it leaves alone, in a workspace in which everything has run."""

from __future__ import annotations

import os

import pytest
from conftest import Workspace
from labelled import RUNS

TABLES = ("metrics.json", "metrics/all.json", "tables/methods-news.csv")
SECONDS = 5
"""Of the processor, for a `dvc repro` that runs nothing."""


@pytest.fixture(scope="module")
def still(built: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A copy for commands of dvc that leave everything as it is: two of them in one workspace would wait."""
    return built.copied(tmp_path_factory.mktemp("still") / "copy")


def test_the_second_repro_runs_nothing_and_is_quick(still: Workspace) -> None:
    before = os.times()
    assert still.repro() == []
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used < SECONDS


def test_a_run_needs_none_of_the_other_runs(still: Workspace) -> None:
    with still.without("models/fedavg"), still.without("reports/predictions/names-ditto"):
        assert still.repro("evaluate@news-fedavg", "evaluate@fedselectkd") == []


def test_pycache_is_no_change(still: Workspace) -> None:
    for folder in ("pipeline", "data/own"):
        (still.folder / folder / "__pycache__").mkdir(parents=True, exist_ok=True)
        (still.folder / folder / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"new")
    assert still.repro() == []


@pytest.mark.parametrize("metric", ["fedselectkd.average", "news-fedavg.accuracy"])
def test_dvc_shows_metrics_a_column_a_run(still: Workspace, metric: str) -> None:
    assert metric in still.run("dvc", "metrics", "show", "--md").stdout


def test_pruning_everything_that_no_run_needs_makes_nothing_run_again(copy: Workspace) -> None:
    copy.call("prune", "--unplanned")
    assert copy.repro() == []


def test_a_new_algorithm_runs_the_plan_and_trains_nothing(copy: Workspace) -> None:
    folder = copy.folder / "pipeline" / "federated" / "algorithms"
    (folder / "fedmagic.py").write_text((folder / "fedavg.py").read_text(encoding="utf-8"), encoding="utf-8")
    table, line = folder / "__init__.py", "ALGORITHMS: dict[str, str] = {\n"
    known = table.read_text(encoding="utf-8")
    assert line in known
    magic = '    "AdaMagic": "pipeline.federated.algorithms.fedmagic",\n'
    table.write_text(known.replace(line, line + magic), encoding="utf-8")
    assert copy.repro() == ["plan"]


def test_a_removed_run_leaves_every_table_and_nothing_is_trained(copy: Workspace) -> None:
    params = copy.read_params()
    copy.params(
        runs={name: row for name, row in params["runs"].items() if name != "news-head"},
        sections=params["sections"] | {"cuts": ["news-pooled", "news-lora"]},
    )
    copy.stage("plan")
    assert copy.outdated() == {"plan", "encode@news", "examples", "report"}
    copy.stage("report")
    for path in TABLES:
        assert "news-head" not in (copy.folder / "reports" / path).read_text(encoding="utf-8"), path


@pytest.mark.parametrize(
    ("run", "rates", "why"),
    [("fedavg", {"server": 1e30}, "; lower learning_rate, run again"), ("news-pooled", None, "lower learning_rate")],
)
def test_a_training_that_fails_is_one_line_and_leaves_nothing_half_written(
    copy: Workspace, run: str, rates: dict[str, float] | None, why: str
) -> None:
    if rates is None:
        copy.params(runs=copy.read_params()["runs"] | {run: RUNS[run] | {"learning_rate": 1e30}})
    else:
        copy.params(rates=copy.read_params()["rates"] | rates)
    copy.stage("plan")
    done = copy.run("dvc", "repro", "--single-item", f"train@{run}", ok=False)
    assert done.returncode != 0
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert why in error
    assert "Traceback" not in done.stderr
    assert not (copy.folder / "models" / run / "1").exists()
    assert not list(copy.folder.rglob("*.tmp"))
