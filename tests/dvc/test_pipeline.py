"""What the main table's stages leave, on the sample with a tiny backbone."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Workspace

from pipeline.workspace.files import read_json, read_jsonl

RUNS = ("zeroshot", "fedavg", "fedavg-local", "fedselectkd")
CLIENTS = ("Academic", "Committee", "Product")


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def history(built: Workspace, run: str) -> list[dict[str, str]]:
    return read_csv(built.folder / "models" / "main" / f"{run}-1" / "history.csv")


def test_a_run_has_its_clients_adapters_and_those_beside_them(built: Workspace) -> None:
    """A client's own, as the teacher met it, and what it was sent; and the server's last."""
    names = {path.name for path in (built.folder / "models/main/fedselectkd-1/adapters").iterdir()}
    own = {f"{client}{kind}.safetensors" for client in CLIENTS for kind in ("", ".before", ".teacher")}
    assert own | {"server.safetensors"} <= names


def test_the_history_has_a_row_a_round_and_client(built: Workspace) -> None:
    rows = history(built, "fedselectkd")
    assert [(row["round"], row["client"]) for row in rows] == [(n, client) for n in "12" for client in CLIENTS]
    assert all(0 <= float(row["share_distilled"]) <= 1 for row in rows)


def test_the_untrained_backbone_has_no_history(built: Workspace) -> None:
    assert history(built, "zeroshot") == []


def test_metrics_json_is_small(built: Workspace) -> None:
    """Two columns a run for `dvc exp show`: means over clients of what all.json has with intervals."""
    small, everything = (
        read_json(built.folder / "reports" / name) for name in ("metrics.json", "metrics/main/all.json")
    )
    assert small == {
        run: {
            metric: pytest.approx(everything[run]["mean"][metric]["value"], abs=0.0006)
            for metric in ("average", "loss")
        }
        for run in RUNS
    }


def test_all_metrics_have_every_run_and_client_and_intervals_of_means(built: Workspace) -> None:
    """A client alone is tested on two meetings here: points."""
    everything = read_json(built.folder / "reports" / "metrics" / "main" / "all.json")
    assert list(everything) == list(RUNS)
    wanted = ("rouge1", "rouge2", "rougeL", "rougeLsum", "average", "similarity", "length", "repetition", "loss")
    for clients in everything.values():
        assert list(clients) == [*CLIENTS, "mean"]
        for client, figures in clients.items():
            assert figures["examples"] > 0
            ends = ["low", "high"] if client == "mean" else []
            for metric in wanted:
                assert list(figures[metric]) == ["value", *ends, "standard_error"]
        mean = clients["mean"]["loss"]
        assert mean["low"] <= mean["value"] <= mean["high"]


def test_with_one_seed_its_metrics_are_those_of_all(built: Workspace) -> None:
    one, everything = (
        read_json(built.folder / "reports" / "metrics" / "main" / name) for name in ("seed-1.json", "all.json")
    )
    assert one == everything


def test_the_page_is_of_the_sample_and_complete_in_itself(built: Workspace) -> None:
    """What means nothing is said so twice: of the sample, and of a model with random weights."""
    page = (built.folder / "reports" / "report.html").read_text(encoding="utf-8")
    assert page.count('<p class="loud">') == 2
    assert "http" not in page.replace("http://www.w3.org", "")


def test_the_page_has_its_parts_in_order(built: Workspace) -> None:
    page = (built.folder / "reports" / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<h2 id="([\w-]+)"', page) == ["scores", "training", "words", "limits", "knobs"]


def test_the_main_table_on_the_page_has_the_rows_of_main_csv(built: Workspace) -> None:
    rows = read_csv(built.folder / "reports" / "tables" / "main.csv")
    assert [(row["client"], row["run"]) for row in rows] == [(c, run) for c in (*CLIENTS, "mean") for run in RUNS]
    page = (built.folder / "reports" / "report.html").read_text(encoding="utf-8")
    start = page.index('<div class="scroll">', page.index('<h2 id="scores">'))
    table = page[start : page.index("<h3>", start)]
    averages = re.findall(r"<td>[^<]*</td><td><span class=\"\w*\">([\d.]+)†*</span>", table)
    assert averages == [f"{float(row['average']):.2f}" for row in rows]


def test_comparisons_have_an_effect_where_their_runs_were_made(built: Workspace) -> None:
    """Of the shipped comparisons two are about runs of this table, each on two metrics."""
    rows = read_csv(built.folder / "reports" / "tables" / "comparisons.csv")
    made = [(row["name"], row["metric"]) for row in rows if row["effect"]]
    assert made == [(name, m) for name in ("fedavg", "before-aggregation") for m in ("average", "loss")]
    assert all(float(row["low"]) <= float(row["effect"]) <= float(row["high"]) for row in rows if row["low"])


def test_the_page_that_quotes_texts_has_a_summary_of_every_run_and_the_teachers_certainty(built: Workspace) -> None:
    page = (built.folder / "reports" / "examples.html").read_text(encoding="utf-8")
    assert page.count('class="case"') == len(CLIENTS)
    assert page.count("<dt>ZeroShot</dt>") == len(CLIENTS)
    assert page.count('class="lens"') > 0


def test_one_training_under_two_names_is_made_once(built: Workspace) -> None:
    """fedavg-local is AdaFedAvg scored before aggregation: one checkpoint serves both, to the measured second."""
    timings = [
        next((built.folder / "work/timings/train").rglob(f"main/{run}-1.json")) for run in ("fedavg", "fedavg-local")
    ]
    assert timings[0].read_bytes() == timings[1].read_bytes()


def test_one_training_under_two_names_tells_the_loss_of_the_model_that_is_scored(built: Workspace) -> None:
    server, local = history(built, "fedavg"), history(built, "fedavg-local")
    assert [row["validation_loss"] for row in server] == [row["server_validation_loss"] for row in server]
    assert [row["validation_loss"] for row in local] == [row["local_validation_loss"] for row in server]


@pytest.mark.parametrize(
    ("stage", "kept", "output"),
    [
        ("generate", "generated", "reports/predictions/main/fedselectkd-1.jsonl"),
        ("evaluate", "evaluated", "results/main/fedselectkd-1.json.gz"),
    ],
)
def test_the_first_run_works_for_all(
    copy: Workspace, capsys: pytest.CaptureFixture[str], stage: str, kept: str, output: str
) -> None:
    """What it wrote for the others is what they wrote themselves; their stages then compute nothing."""
    shutil.rmtree(copy.folder / "work" / kept)
    path = copy.folder / output
    before = path.read_bytes()
    copy.stage(stage, "main/fedselectkd-1")
    assert f"{stage} main/fedselectkd-1 and 3 more" in capsys.readouterr().err
    copy.stage(stage, "main/fedavg-1")
    assert f"{stage} main/fedavg-1" not in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_run_has_a_prediction_a_test_example(built: Workspace) -> None:
    rows: list[dict[str, Any]] = read_jsonl(built.folder / "reports/predictions/main/fedavg-1.jsonl")
    assert len(rows) == 17
    assert list(rows[0]) == ["id", "client", "query", "reference", "prediction", "ended"]


def test_the_plots_of_dvc_yaml_are_of_runs_that_are_there(built: Workspace) -> None:
    named = re.findall(r"models/main/([\w-]+)-1/history.csv", (built.folder / "dvc.yaml").read_text(encoding="utf-8"))
    shipped = json.dumps(built.read_params()["runs"])
    assert named
    assert all(f'"{run}"' in shipped for run in named)
