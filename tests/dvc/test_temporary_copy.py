"""An experiment of `dvc exp run --temp`: what it runs, and what it shares with the workspace that it was asked of."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Workspace
from workspaces import stages_run


@pytest.fixture(scope="module")
def experiment(built: Workspace, tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, list[str]]:
    """`dvc exp run --temp -S tau=4 train@fedselectkd-1`: the workspace that it starts from, the stages that it ran."""
    asked = built.copied(tmp_path_factory.mktemp("experiment") / "copy")
    asked.commit()
    timing(asked).unlink()
    return asked, stages_run(asked.run("dvc", "exp", "run", "--temp", "-S", "tau=4", "train@fedselectkd-1").stdout)


def timing(workspace: Workspace) -> Path:
    (path,) = (workspace.folder / "work" / "timings" / "train").rglob("main/fedselectkd-1.json")
    return path


def test_an_experiment_runs_the_plan_and_the_training(experiment: tuple[Workspace, list[str]]) -> None:
    assert experiment[1] == ["plan", "train@fedselectkd-1"]


def test_an_experiment_in_a_temporary_copy_shares_what_outlives_a_stage(
    experiment: tuple[Workspace, list[str]],
) -> None:
    assert timing(experiment[0]).is_file(), "work/ is that of the real root"


def test_an_experiment_in_a_temporary_copy_leaves_the_workspace_as_it_is(
    built: Workspace, experiment: tuple[Workspace, list[str]]
) -> None:
    for path in ("params.yaml", "dvc.lock", "reports/report.html", "models/main/fedselectkd-1/history.csv"):
        assert (experiment[0].folder / path).read_bytes() == (built.folder / path).read_bytes(), path
