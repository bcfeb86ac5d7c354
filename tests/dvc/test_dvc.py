"""What the real `dvc` runs again, and what it leaves alone, in a workspace in which everything has run."""

from __future__ import annotations

import pytest
from conftest import Workspace
from workspaces import SMALL

PAGE = ("metrics.json", "metrics/main/all.json", "tables/main.csv")


@pytest.fixture(scope="module")
def still(built: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A copy for commands of dvc that leave everything as it is: two of them in one workspace would wait."""
    return built.copied(tmp_path_factory.mktemp("still") / "copy")


def test_the_second_repro_runs_nothing(still: Workspace) -> None:
    assert still.repro() == []


def test_the_main_table_needs_none_of_the_other_runs(still: Workspace) -> None:
    with still.without("data/encoded/more"):
        assert still.repro("main") == []


def test_pycache_is_no_change(still: Workspace) -> None:
    for folder in ("pipeline", "data/own"):
        (still.folder / folder / "__pycache__").mkdir(exist_ok=True)
        (still.folder / folder / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"new")
    assert still.repro("main") == []


def test_dvc_shows_metrics_a_column_a_run(still: Workspace) -> None:
    assert "fedselectkd.average" in still.run("dvc", "metrics", "show", "--md").stdout


def test_dvc_draws_its_plots_a_part_a_client(still: Workspace) -> None:
    assert '"facet"' in still.run("dvc", "plots", "show", "--json").stdout


def test_pruning_everything_that_no_run_needs_makes_nothing_run_again(copy: Workspace) -> None:
    copy.call("prune", "--unplanned")
    assert copy.repro() == []


def test_a_new_algorithm_runs_the_plan_and_retrains_nothing(copy: Workspace) -> None:
    folder = copy.folder / "pipeline" / "federated" / "algorithms"
    (folder / "fedmagic.py").write_text((folder / "fedavg.py").read_text(encoding="utf-8"), encoding="utf-8")
    table, line = folder / "__init__.py", "ALGORITHMS: dict[str, str] = {\n"
    known = table.read_text(encoding="utf-8")
    assert line in known
    magic = '    "AdaMagic": "pipeline.federated.algorithms.fedmagic",\n'
    table.write_text(known.replace(line, line + magic), encoding="utf-8")
    assert copy.repro("main") == ["plan"]


def test_a_new_tau_changes_the_plan_the_run_that_uses_it_and_the_page(copy: Workspace) -> None:
    """FedAvg has no τ."""
    copy.params(tau=4.0)
    copy.stage("plan")
    assert copy.outdated("main") == {"plan", "train@fedselectkd-1", "words", "main"}


def test_a_removed_run_leaves_every_table_and_trains_nothing(copy: Workspace) -> None:
    copy.params(runs={name: row for name, row in SMALL["runs"].items() if name != "fedavg-local"})
    copy.stage("plan")
    assert copy.outdated("main") == {"plan", "encode", "words", "main"}
    copy.stage("encode", "main")
    copy.stage("main")
    for path in PAGE:
        assert "fedavg-local" not in (copy.folder / "reports" / path).read_text(encoding="utf-8"), path


def test_a_training_that_fails_is_one_line_and_leaves_nothing_half_written(copy: Workspace) -> None:
    copy.params(learning_rate=1e30, batch_size=1)
    copy.stage("plan")
    done = copy.run("dvc", "repro", "--single-item", "train@fedavg-1", ok=False)
    assert done.returncode != 0
    assert [line.partition(": the loss is")[1] for line in done.stderr.splitlines() if line.startswith("error: ")] == [
        ": the loss is"
    ]
    assert "Traceback" not in done.stderr
    assert not (copy.folder / "models" / "main" / "fedavg-1").exists()
    assert not list(copy.folder.rglob("*.tmp"))
