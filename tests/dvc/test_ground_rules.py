"""The ground rules: the layout, the stages, an experiment with another τ, MLflow, and clones.

What the real `dvc` runs again, and what it leaves alone. A clone has committed files alone, or a remote, too.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Workspace
from labelled import EVERY, laid
from workspaces import ROOT, stages_run, stand_ins

RUNS = ("fedselectkd", "news-fedavg")
USED = {"data": ("qmsum", "news"), "settings": ("domains", "news"), "runs": RUNS}
FEW = {key: {name: EVERY[key][name] for name in names} for key, names in USED.items()} | {
    "sources": ["qmsum", "20news"],
    "backbones": ["tiny-llama", "tiny-bert"],
    "sections": {"main": ["fedselectkd"], "methods": ["news"]},
}
"""A setting of meetings and one of labelled texts."""
LAYOUT = ("dvc.yaml", "params.yaml", "pyproject.toml", "pipeline/", "data/", "models/", "reports/", "tests/")
"""At the repository's top."""
OF_RUN = ("train", "predict", "evaluate")
STAGES = ("ingest", "prepare", "backbone", "partition", "encode", *OF_RUN, "analyze", "examples", "report")
"""Behind the plan, in their order."""
STATUSES = "select name, group_concat(status) from runs group by name"
METRICS = "select runs.name, key, step, value from metrics join runs using (run_uuid) where key not like '%seconds'"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which `dvc repro` has run every stage, and a local remote."""
    made = laid(tmp_path_factory.mktemp("graph") / "clone", EVERY | FEW | {"scales": {"small": {}, "full": {}}})
    made.run("dvc", "remote", "add", "--default", "local", str(made.folder.parent / "remote"))
    made.commit()
    assert {stage.partition("@")[0] for stage in made.repro()} == {"plan", *STAGES}
    made.commit()
    return made


def rows(workspace: Workspace, query: str) -> set[tuple[Any, ...]]:
    """Rows from MLflow's database that begin with the name of a run at a seed: none of pages and parents."""
    return {row for row in workspace.logged(query) if row[0].rpartition("-")[0] in RUNS}


def adapters(workspace: Workspace) -> dict[str, set[str]]:
    """Run at a seed -> the adapters that MLflow has of it."""
    found = rows(workspace, "select name, run_uuid from runs")
    folders = {name: workspace.folder / "mlartifacts" / identity / "artifacts/adapters" for name, identity in found}
    return {name: {path.stem for path in folder.glob("*.safetensors")} for name, folder in folders.items()}


def cloned(graph: Workspace, folder: Path) -> Workspace:
    graph.run("git", "clone", "-q", str(graph.folder), str(folder))
    shutil.copytree(graph.folder / ".dvc" / "tmp", folder / ".dvc" / "tmp", ignore=lambda *_: ["lock", "rwlock"])
    return Workspace(folder)


def test_the_repository_has_the_layout_and_stages_are_named_in_the_order_in_which_they_run() -> None:
    """In git, so that a clone has it; models/ has no more than its .gitignore there."""
    command = ["git", "ls-files", "--error-unmatch", *LAYOUT]
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0
    assert [(ROOT / name).is_dir() for name in LAYOUT] == [name.endswith("/") for name in LAYOUT]
    written = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    assert tuple(written["stages"]) == ("plan", *STAGES)
    # In `dvc status`, a folder below another DVC root is empty, so the page would be made again and again.
    (shown,) = (one["shown"] for one in written["vars"] if "shown" in one)
    assert (ROOT / shown).is_file()


def test_no_page_that_dvc_stores_is_in_git() -> None:
    """DVC refuses a stage whose output git has."""
    pages = ["*reports/report.html", "*reports/gallery.html", "*reports/examples.html"]
    listed = subprocess.run(["git", "ls-files", *pages], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert listed == ""


def test_every_training_is_in_mlflow_once_with_metrics_and_adapters(graph: Workspace) -> None:
    """A run of meetings at one seed, one of labelled texts at two."""
    owners = {"fedselectkd-1": {"Academic", "Committee", "Product", "server"}}
    owners |= {"news-fedavg-1": {"server"}, "news-fedavg-2": {"server"}}
    assert dict(rows(graph, STATUSES)) == dict.fromkeys(owners, "FINISHED")
    assert adapters(graph) == owners
    rounds = {(run, step) for run, metric, step, _ in rows(graph, METRICS) if metric.endswith("/validation_loss")}
    assert rounds == {(name, n) for name in owners for n in (1, 2)}


def test_a_clone_renders_the_page_from_committed_files(graph: Workspace, tmp_path: Path) -> None:
    """Without texts, weights, models or predictions."""
    clone = cloned(graph, tmp_path / "clone")
    clone.run("dvc", "repro", "--single-item", "plan")
    assert clone.repro("--single-item", "report") == ["report"]
    for name in ("metrics.json", "tables/methods-news.csv"):
        assert (clone.folder / "reports" / name).read_bytes() == (graph.folder / "reports" / name).read_bytes()
    assert not (clone.folder / "data/prepared").exists()
    assert not (clone.folder / "models/fedselectkd").exists()


def test_a_clone_with_the_remote_pulls_everything_tracks_it_and_runs_nothing(graph: Workspace, tmp_path: Path) -> None:
    """MLflow's database and artifacts are not in the remote: they are made from the files."""
    graph.run("dvc", "push")
    clone = cloned(graph, tmp_path / "clone")
    clone.run("dvc", "pull")
    clone.pipeline("track")
    for query in (STATUSES, METRICS):
        assert rows(clone, query) == rows(graph, query)
    assert adapters(clone) == adapters(graph)
    assert clone.repro() == []
    clone.run("dvc", "repro", "--force", "--single-item", "report")
    assert clone.run("git", "status", "--short").stdout == ""


def test_an_experiment_in_a_temporary_copy_runs_what_depends_on_the_new_tau(graph: Workspace, tmp_path: Path) -> None:
    """AdaFedAvg has no τ. The workspace stays as it is, but for what outlives a stage: work/ is that of the root."""
    start = graph.copied(tmp_path / "copy")
    timing = start.folder / "work/timings/train/fedselectkd/1.json"
    timing.unlink()
    ran = stages_run(start.run("dvc", "exp", "run", "--temp", "-S", "tau=4").stdout)
    of_run = [f"{stage}@fedselectkd" for stage in OF_RUN]
    assert sorted(ran) == sorted(["plan", *of_run, "analyze", "examples", "report"])
    assert timing.is_file()
    assert dict(rows(start, STATUSES))["fedselectkd-1"] == "FINISHED,FINISHED"
    for path in ("params.yaml", "dvc.lock", "reports/report.html", "models/fedselectkd/1/history.csv"):
        assert (start.folder / path).read_bytes() == (graph.folder / path).read_bytes(), path


def test_a_training_that_is_forced_takes_the_models_that_are_there(graph: Workspace, tmp_path: Path) -> None:
    """DVC does not remove outputs that persist."""
    copy = graph.copied(tmp_path / "copy")
    assert "has been trained" in copy.run("dvc", "repro", "--force", "--single-item", "train@news-fedavg").stderr
    copy.run("dvc", "repro", "--force", "--single-item", "evaluate@news-fedavg")
    assert copy.run("git", "status", "--short").stdout == ""


def test_the_second_repro_runs_nothing_and_is_quick(copy: Workspace) -> None:
    """A `__pycache__` is no change."""
    for folder in ("pipeline", "data/own"):
        (copy.folder / folder / "__pycache__").mkdir(parents=True, exist_ok=True)
        (copy.folder / folder / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"new")
    before = sum(os.times()[2:4])  # of children
    assert copy.repro() == []
    assert sum(os.times()[2:4]) - before < 5, "seconds of the processor"


def test_a_run_needs_none_of_the_other_runs(copy: Workspace) -> None:
    for path in ("models/fedavg", "reports/predictions/names-ditto"):
        shutil.rmtree(copy.folder / path)
    assert copy.repro("evaluate@news-fedavg", "evaluate@fedselectkd") == []


def test_dvc_shows_metrics_a_column_a_run(copy: Workspace) -> None:
    shown = copy.run("dvc", "metrics", "show", "--md").stdout
    assert "fedselectkd.average" in shown
    assert "news-fedavg.accuracy" in shown


def test_a_removed_run_leaves_every_table_and_nothing_is_trained(copy: Workspace) -> None:
    """Tables and figures of former sections are removed."""
    params = copy.read_params()
    copy.params(
        runs={name: row for name, row in params["runs"].items() if name != "news-head"},
        sections={name: own for name, own in params["sections"].items() if name not in ("cuts", "sizes")},
    )
    former = [copy.folder / "reports" / path for path in ("tables/cuts.csv", "figures/size_figure.svg")]
    assert all(path.is_file() for path in former)
    copy.stage("plan")
    assert copy.outdated() == {"plan", "encode@news", "examples", "report"}
    with stand_ins():
        copy.stage("report")
    assert not any(path.exists() for path in former)
    for path in ("metrics.json", "metrics/all.json", "tables/methods-news.csv"):
        assert "news-head" not in (copy.folder / "reports" / path).read_text(encoding="utf-8"), path
