"""The ground rules: the layout, the stages, an experiment with another τ, MLflow, and clones.

A clone has committed files alone, or a remote, too.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from conftest import Workspace
from labelled import EVERY, laid
from workspaces import ROOT, stages_run

RUNS = ("fedavg", "fedselectkd", "news-fedavg")
FEW = {
    "sources": ["qmsum", "20news"],
    "backbones": ["tiny-llama", "tiny-bert"],
    "data": {name: EVERY["data"][name] for name in ("qmsum", "news")},
    "settings": {name: EVERY["settings"][name] for name in ("domains", "news")},
    "runs": {name: EVERY["runs"][name] for name in RUNS},
    "sections": {"main": ["fedavg", "fedselectkd"], "methods": ["news"]},
}
"""A setting of meetings and one of labelled texts."""
LAYOUT = (
    *("dvc.yaml", "params.yaml", "pyproject.toml"),
    *("pipeline/", "data/", "models/", "reports/", "tests/"),
)
"""At the repository's top."""
OF_RUN = ("train", "predict", "evaluate")
STAGES = ("ingest", "prepare", "backbone", "partition", "encode", *OF_RUN, "analyze", "examples", "report")
"""Behind the plan, in their order."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which `dvc repro` has run every stage, and a local remote."""
    made = laid(tmp_path_factory.mktemp("graph") / "clone", EVERY | FEW)
    made.run("dvc", "remote", "add", "--default", "local", str(made.folder.parent / "remote"))
    made.commit()
    assert {stage.partition("@")[0] for stage in made.repro()} == {"plan", *STAGES}
    made.commit()
    return made


def logged(workspace: Workspace) -> dict[str, list[str]]:
    """Run at a seed -> its statuses in MLflow, the oldest first; without pages and parents."""
    with closing(sqlite3.connect(workspace.folder / "mlflow.db")) as store:
        rows = store.execute("select name, status from runs order by start_time").fetchall()
    names = dict.fromkeys(name for name, _ in rows if name.rpartition("-")[0] in RUNS)
    return {name: [status for one, status in rows if one == name] for name in names}


def metrics(workspace: Workspace) -> set[tuple[str, str, int, float]]:
    """(run, metric, round, value), without those of pages and parents, and without times, which stay in work/."""
    query = "select runs.name, key, step, value from metrics join runs using (run_uuid) where key not like '%seconds'"
    with closing(sqlite3.connect(workspace.folder / "mlflow.db")) as store:
        return {row for row in store.execute(query) if row[0].rpartition("-")[0] in RUNS}


def adapters(workspace: Workspace, run: str) -> list[Path]:
    """What MLflow has of a run's only training."""
    with closing(sqlite3.connect(workspace.folder / "mlflow.db")) as store:
        ((identity,),) = store.execute("select run_uuid from runs where name = ?", (run,))
    return list((workspace.folder / "mlartifacts" / identity / "artifacts/adapters").glob("*.safetensors"))


def cloned(graph: Workspace, folder: Path) -> Workspace:
    graph.run("git", "clone", "-q", str(graph.folder), str(folder))
    shutil.copytree(graph.folder / ".dvc" / "tmp", folder / ".dvc" / "tmp", ignore=lambda *_: ["lock", "rwlock"])
    return Workspace(folder)


@pytest.mark.parametrize("name", LAYOUT)
def test_the_repository_has_the_layout(name: str) -> None:
    """In git, so that a clone has it; models/ has no more than its .gitignore there."""
    tracked = subprocess.run(["git", "ls-files", name], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert tracked, name
    assert (ROOT / name).is_dir() is name.endswith("/")


def test_the_stages_are_named_in_the_order_in_which_they_run() -> None:
    assert tuple(yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]) == ("plan", *STAGES)


def test_the_tour_depends_on_a_file_of_the_result() -> None:
    """In `dvc status`, a folder below another DVC root is empty, so the page would be made again and again."""
    values = {
        key: value for one in yaml.safe_load((ROOT / "dvc.yaml").read_text())["vars"] for key, value in one.items()
    }
    assert (ROOT / values["shown"]).is_file()


def test_a_second_repro_runs_nothing_and_git_has_nothing_new(graph: Workspace) -> None:
    assert graph.repro() == []
    assert graph.run("git", "status", "--short").stdout == ""


def test_every_training_is_in_mlflow_once_with_metrics_and_adapters(graph: Workspace) -> None:
    """Two runs of meetings at one seed, one of labelled texts at two."""
    owners = {name: ["server"] for name in ("news-fedavg-1", "news-fedavg-2")}
    owners |= {name: ["Academic", "Committee", "Product", "server"] for name in ("fedavg-1", "fedselectkd-1")}
    assert logged(graph) == {name: ["FINISHED"] for name in owners}
    assert {name: sorted(path.stem for path in adapters(graph, name)) for name in owners} == owners
    rounds = {(run, step) for run, metric, step, _ in metrics(graph) if metric.endswith("/validation_loss")}
    assert rounds == {(name, n) for name in owners for n in (1, 2)}
    assert {run for run, metric, *_ in metrics(graph) if metric.startswith("test/")} == set(owners)


def test_a_clone_renders_the_page_from_committed_files(graph: Workspace, tmp_path: Path) -> None:
    """Without texts, weights, models or predictions."""
    clone = cloned(graph, tmp_path / "clone")
    clone.run("dvc", "repro", "--single-item", "plan")
    assert stages_run(clone.run("dvc", "repro", "--single-item", "report").stdout) == ["report"]
    for name in ("metrics.json", "tables/methods-news.csv"):
        assert (clone.folder / "reports" / name).read_bytes() == (graph.folder / "reports" / name).read_bytes()
    assert (clone.folder / "reports/report.html").is_file()
    assert not (clone.folder / "data/prepared").exists()
    assert not (clone.folder / "models/fedavg").exists()


def test_a_clone_with_the_remote_pulls_everything_tracks_it_and_runs_nothing(graph: Workspace, tmp_path: Path) -> None:
    """MLflow's database and artifacts are not in the remote: they are made from the files."""
    graph.run("dvc", "push")
    clone = cloned(graph, tmp_path / "clone")
    clone.run("dvc", "pull")
    clone.pipeline("track")
    assert logged(clone) == logged(graph)
    assert metrics(clone) == metrics(graph) != set()
    for run in logged(graph):
        assert {path.name for path in adapters(clone, run)} == {path.name for path in adapters(graph, run)} != set()
    assert clone.repro() == []
    clone.run("dvc", "repro", "--force", "--single-item", "report")
    assert clone.run("git", "status", "--short").stdout == ""


@pytest.fixture(scope="module")
def experiment(graph: Workspace, tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, list[str]]:
    """`dvc exp run --temp -S tau=4`: the workspace from which it starts, and the stages that it runs."""
    start = graph.copied(tmp_path_factory.mktemp("experiment") / "copy")
    timing(start).unlink()
    return start, stages_run(start.run("dvc", "exp", "run", "--temp", "-S", "tau=4").stdout)


def timing(workspace: Workspace) -> Path:
    return workspace.folder / "work/timings/train/fedselectkd/1.json"


def test_a_new_tau_runs_what_depends_on_it(experiment: tuple[Workspace, list[str]]) -> None:
    """AdaFedAvg has no τ."""
    of_run = [f"{stage}@fedselectkd" for stage in OF_RUN]
    assert sorted(experiment[1]) == sorted(["plan", *of_run, "analyze", "examples", "report"])


def test_an_experiment_in_a_temporary_copy_shares_what_outlives_a_stage(
    experiment: tuple[Workspace, list[str]],
) -> None:
    assert timing(experiment[0]).is_file(), "work/ is that of the real root"
    assert logged(experiment[0])["fedselectkd-1"] == ["FINISHED", "FINISHED"]


def test_an_experiment_in_a_temporary_copy_leaves_the_workspace_as_it_is(
    graph: Workspace, experiment: tuple[Workspace, list[str]]
) -> None:
    for path in ("params.yaml", "dvc.lock", "reports/report.html", "models/fedselectkd/1/history.csv"):
        assert (experiment[0].folder / path).read_bytes() == (graph.folder / path).read_bytes(), path


def test_a_training_that_is_forced_takes_the_models_that_are_there(graph: Workspace, tmp_path: Path) -> None:
    """DVC does not remove outputs that persist."""
    copy = graph.copied(tmp_path / "copy")
    assert "has been trained" in copy.run("dvc", "repro", "--force", "--single-item", "train@news-fedavg").stderr
    copy.run("dvc", "repro", "--force", "--single-item", "evaluate@news-fedavg")
    assert copy.run("git", "status", "--short").stdout == ""
