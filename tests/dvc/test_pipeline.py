"""The whole DAG on the sample with a tiny backbone, through the real `dvc`."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import SMALL, Workspace, stages_run

RUNS = ("fedavg", "fedavg-local", "fedselectkd", "zeroshot")


@pytest.fixture(scope="module")
def made(workspace: Workspace) -> Workspace:
    """A workspace in which everything ran once; the tests below go on from there, in this order."""
    ran = workspace.repro("main")
    assert ran[0] == "plan"
    assert ran[-1] == "main"
    assert len(ran) == 6 + 3 * len(RUNS) + 1
    return workspace


def test_the_second_repro_runs_nothing(made: Workspace) -> None:
    assert made.repro("main") == []


def test_pycache_is_no_change(made: Workspace) -> None:
    for folder in ("pipeline", "data/own"):
        (made.folder / folder / "__pycache__").mkdir(exist_ok=True)
        (made.folder / folder / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"new")
    assert made.repro("main") == []


def test_outputs_are_where_they_should_be(made: Workspace) -> None:
    model = made.folder / "models" / "main" / "fedselectkd-1"
    names = {p.name for p in (model / "adapters").iterdir()}
    for client in ("Academic", "Committee", "Product"):
        assert {f"{client}.safetensors", f"{client}.teacher.safetensors"} <= names
    assert "server.safetensors" in names
    rows = read_csv(model / "history.csv")
    assert [r["client"] for r in rows] == ["Academic", "Committee", "Product"] * 2
    assert all(0 <= float(r["share_distilled"]) <= 1 for r in rows)
    report = (made.folder / "reports" / "report.html").read_text()
    assert "Made from the SAMPLE" in report
    assert "http" not in report.replace("http://www.w3.org", "")


def test_metrics_hold_every_run_and_client(made: Workspace) -> None:
    metrics = json.loads((made.folder / "reports" / "metrics.json").read_text())
    assert sorted(metrics) == sorted(RUNS)
    wanted = ("rouge1", "rouge2", "rougeL", "rougeLsum", "average", "loss", "similarity", "length", "repetition")
    for clients in metrics.values():
        assert list(clients) == ["Academic", "Committee", "Product", "mean"]
        for figures in clients.values():
            assert all({m, f"{m}_low", f"{m}_high"} <= set(figures) for m in wanted)
            assert figures["examples"] > 0
            assert figures["loss_low"] <= figures["loss"] <= figures["loss_high"]
    seeds = json.loads((made.folder / "reports" / "metrics" / "main" / "seed-1.json").read_text())
    assert seeds == metrics


def test_the_same_training_was_not_run_twice(made: Workspace) -> None:
    """fedavg-local is AdaFedAvg scored before aggregation: one checkpoint serves both, to the measured second."""
    times = [
        made.folder / "work" / "timings" / "train" / "main" / f"{run}-1.json" for run in ("fedavg", "fedavg-local")
    ]
    assert times[0].read_bytes() == times[1].read_bytes()
    rows = [
        read_csv(made.folder / "models" / "main" / f"{run}-1" / "history.csv") for run in ("fedavg", "fedavg-local")
    ]
    assert [r["local_validation_loss"] for r in rows[0]] == [r["local_validation_loss"] for r in rows[1]]
    assert [r["validation_loss"] for r in rows[0]] == [r["server_validation_loss"] for r in rows[0]]
    assert [r["validation_loss"] for r in rows[1]] == [r["local_validation_loss"] for r in rows[1]]


@pytest.mark.parametrize(
    ("stage", "kept", "output"),
    [
        ("generate", "generated", "predictions/main/fedselectkd-1.jsonl"),
        ("evaluate", "evaluated", "scores/main/fedselectkd-1.json"),
    ],
)
def test_the_first_run_works_for_all(made: Workspace, stage: str, kept: str, output: str) -> None:
    """What it wrote for the others is what they wrote themselves; their stages then compute nothing."""
    shutil.rmtree(made.folder / "work" / kept)
    path = made.folder / "reports" / output
    before = path.read_bytes()
    assert f"{stage} main/fedselectkd-1 and " in made.pipeline(stage, "fedselectkd-1").stderr
    assert f"{stage} main/fedavg-1" not in made.pipeline(stage, "fedavg-1").stderr
    assert path.read_bytes() == before
    assert made.repro("main") == []


def test_predictions_quote_and_name_their_clients(made: Workspace) -> None:
    lines = (made.folder / "reports" / "predictions" / "main" / "fedavg-1.jsonl").read_text().splitlines()
    assert len(lines) == 17
    assert list(json.loads(lines[0])) == ["id", "client", "query", "reference", "prediction"]


def test_dvc_shows_metrics_plots_and_status(made: Workspace) -> None:
    assert "fedselectkd" in made.run("dvc", "metrics", "show", "--md").stdout
    assert '"facet"' in made.run("dvc", "plots", "show", "--json").stdout, "a part of a plot a client"
    assert "up to date" in made.run("dvc", "status", "main").stdout
    assert "main" in made.run("dvc", "dag", "--mermaid", "main").stdout


def test_tracking_is_a_projection_that_doubles_nothing(made: Workspace) -> None:
    made.pipeline("track")
    first = runs_in(made.folder / "mlflow.db")
    made.pipeline("track")
    assert runs_in(made.folder / "mlflow.db") == first
    assert {f"{run}-1" for run in RUNS} <= set(first)
    assert len(first) == len(set(first))


def test_mlflow_holds_params_metrics_and_adapters_by_their_names(made: Workspace) -> None:
    with closing(sqlite3.connect(made.folder / "mlflow.db")) as connection:
        (run,) = connection.execute("select run_uuid from runs where name = 'fedselectkd-1'").fetchone()
        params = dict(connection.execute("select key, value from params where run_uuid = ?", (run,)))
        metrics = list(connection.execute("select key, step from metrics where run_uuid = ?", (run,)))
    assert {k: params[k] for k in ("tau", "lambda", "method", "seed", "max_tokens", "backbone")} == {
        "tau": "5.0",
        "lambda": "0.2",
        "method": "AdaFedSelectKD",
        "seed": "1",
        "max_tokens": "12",
        "backbone": "tiny-llama",
    }
    assert {("Academic/validation_loss", 1), ("Academic/validation_loss", 2), ("mean/rouge1", 0)} <= set(metrics)
    adapters = made.folder / "mlartifacts" / run / "artifacts" / "adapters"
    assert sorted(path.stem for path in adapters.iterdir()) == ["Academic", "Committee", "Product"]


def test_a_clone_that_has_only_the_metrics_of_a_run_is_no_error(made: Workspace) -> None:
    """Git has metrics of all runs and a clone may make but some: here as if the last encoding were another's."""
    with made.without("data/encoded/main/zeroshot-1.json"):
        assert "track: 0 runs brought" in made.pipeline("track").stderr


def test_a_deleted_store_comes_back(made: Workspace) -> None:
    before = runs_in(made.folder / "mlflow.db")
    (made.folder / "mlflow.db").unlink()
    made.pipeline("track")
    assert runs_in(made.folder / "mlflow.db") == before


def test_a_new_algorithm_file_retrains_nothing(made: Workspace) -> None:
    folder = made.folder / "pipeline" / "federated"
    (folder / "fedmagic.py").write_text((folder / "fedavg.py").read_text(), encoding="utf-8")
    registry = folder / "registry.py"
    registry.write_text(
        registry.read_text().replace(
            "ALGORITHMS: dict[str, str] = {",
            'ALGORITHMS: dict[str, str] = {\n    "AdaMagic": "pipeline.federated.fedmagic",',
        ),
        encoding="utf-8",
    )
    assert made.repro("main") == ["plan"]


def test_a_new_tau_runs_only_what_depends_on_it(made: Workspace) -> None:
    done = made.run(
        "dvc",
        "exp",
        "run",
        "-S",
        "tau=4",
        "main",
        env={
            "GIT_AUTHOR_NAME": "t",
            "GIT_AUTHOR_EMAIL": "t@t",
            "GIT_COMMITTER_NAME": "t",
            "GIT_COMMITTER_EMAIL": "t@t",
        },
    )
    assert stages_run(done.stdout) == [
        "plan",
        "train@fedselectkd-1",
        "generate@fedselectkd-1",
        "evaluate@fedselectkd-1",
        "main",
    ]


def test_one_off_in_a_temporary_copy_shares_the_store(made: Workspace) -> None:
    """`dvc exp run --temp` works elsewhere; what it needs of work/ is found at the real root."""
    made.run("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "tau")
    timing = made.folder / "work" / "timings" / "train" / "main" / "fedselectkd-1.json"
    before = timing.stat().st_mtime_ns
    identity = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = made.run("dvc", "exp", "run", "--temp", "-S", "lambda=0.5", "main", env=identity)
    assert "train@fedselectkd-1" in done.stdout
    assert timing.stat().st_mtime_ns > before, "what outlives a stage is written here"


def test_a_removed_run_leaves_every_table(made: Workspace) -> None:
    runs = {name: row for name, row in SMALL["runs"].items() if name != "fedavg-local"}
    made.params(runs=runs)
    ran = made.repro("main")
    assert not [stage for stage in ran if stage.startswith("train@")]
    for path in ("metrics.json", "tables/main.csv", "tables/significance.csv", "report.html"):
        assert "fedavg-local" not in (made.folder / "reports" / path).read_text(), path


def test_a_training_that_fails_leaves_one_line_and_nothing_half_written(made: Workspace) -> None:
    made.params(learning_rate=1e30, runs={"fedavg": {"method": "AdaFedAvg"}})
    done = made.run("dvc", "repro", "train", ok=False)
    assert done.returncode != 0
    assert "the loss is" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (made.folder / "models" / "main" / "fedavg-1").exists()


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def runs_in(database: Path) -> list[str]:
    with sqlite3.connect(database) as connection:
        return sorted(row[0] for row in connection.execute("select name from runs where lifecycle_stage = 'active'"))
