"""The tables of README and docs are those of committed files, and the rates and knobs are those that tuning chose."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT

from pipeline.plan.texts import read_text_params

REPORTS = ROOT / "reports"


def rows_of(page: Path, head: str) -> list[list[str]]:
    """The cells of the table under a heading row that begins with `head`."""
    lines = page.read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {head}"))
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def shown(row: dict[str, str], metric: str, digits: int) -> str:
    value, low, high = (f"{float(row[name]):.{digits}f}" for name in (metric, f"{metric}_low", f"{metric}_high"))
    return f"{value} ({low} … {high})"


def test_the_readmes_main_table_is_the_committed_one() -> None:
    mean = [row for row in read(REPORTS / "tables" / "main.csv") if row["client"] == "mean"]
    wanted = [[row["method"], shown(row, "average", 2), shown(row, "loss", 3)] for row in mean]
    assert rows_of(ROOT / "README.md", "method") == wanted


def test_what_the_results_say_of_differences_is_in_the_committed_table() -> None:
    """Every number with a point in it, whatever its sign."""
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    told = text.split("## What this run shows")[1].split("\n## ")[0]
    rows = [row for row in read(REPORTS / "tables" / "significance.csv") if row["client"] == "mean"]
    told_of = ("difference", "low", "high", "visible", "p_holm")
    values = [abs(float(row[name])) for row in rows for name in told_of if row[name]]
    known = {f"{value:.{digits}f}" for value in values for digits in (2, 3, 4)}
    stated = re.findall(r"\d+\.\d+", told)
    assert stated
    assert [number for number in stated if number not in known] == []


@pytest.mark.parametrize("when", ["before", "now"])
def test_the_parts_of_make_repro_are_the_measured_ones(when: str) -> None:
    parts: dict[str, Any] = json.loads((REPORTS / "benchmarks" / "parts.json").read_text(encoding="utf-8"))[when]
    column = {"before": 1, "now": 2}[when]
    stated = {row[0]: row[column] for row in rows_of(ROOT / "docs" / "performance.md", "part")}
    wanted = {name: f"{minutes:.1f} min" for name, minutes in (parts["parts"] | {"all": parts["total"]}).items()}
    assert {name.split(",")[0]: minutes for name, minutes in stated.items()} == wanted


def test_what_messages_over_flower_cost_is_what_was_measured() -> None:
    measured = REPORTS / "benchmarks" / "messages.md"
    assert rows_of(ROOT / "docs" / "performance.md", "what | measured") == rows_of(measured, "what")


@pytest.mark.parametrize(
    ("folder", "scale"), [(ROOT, "laptop"), (ROOT / "experiments" / "full", "full")], ids=["laptop", "full"]
)
def test_learning_rates_are_those_that_tuning_chose(folder: Path, scale: str) -> None:
    """As soon as a table of it is committed."""
    table = folder / "reports" / "tables" / "tuning.csv"
    if not table.is_file():
        assert f"`{scale}` are not tuned yet" in (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
        return
    rates = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["scales"][scale]["learning_rates"]
    chosen = {row["chooses"]: row["knobs"] for row in read(table) if row["chosen"] == "1"}
    assert {family: chosen.pop(family) for family in rates} == {f: f"learning_rate={rate}" for f, rate in rates.items()}
    runs = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))["more_runs"]
    for run, knobs in chosen.items():
        name, _, value = knobs.partition("=")
        assert runs[run][name] == float(value), f"{run}: {knobs} was chosen"


def test_rates_and_knobs_of_labelled_texts_are_those_that_tuning_chose() -> None:
    """As soon as a table of it is committed; until then the experiment's page says that they are first guesses."""
    folder = ROOT / "experiments" / "fednlp"
    table = folder / "reports" / "tables" / "tuning.csv"
    if not table.is_file():
        assert "first guesses" in (folder / "README.md").read_text(encoding="utf-8")
        return
    params = read_text_params(folder / "params.yaml")
    chosen = [row for row in read(table) if row["scale"] == params.scale and row["chosen"] == "1"]
    assert chosen, "the table holds none of this scale"
    for row in chosen:
        data = params.datasets[row["dataset"]]
        if row["chooses"] == row["run"]:
            found = params.runs[row["run"]].learning_rate
        elif row["knob"] == "learning_rate":
            found = getattr(data.rates, row["chooses"])
        else:
            found = data.knobs[row["chooses"]][row["knob"]]
        assert found == float(row["value"]), f"{row['run']}: {row['knob']}={row['value']} was chosen"


@pytest.mark.parametrize(("experiment", "fixed"), [("faults", "a norm of 1.0"), ("fednlp", ""), ("full", "")])
def test_what_came_out_of_an_experiment_is_in_its_committed_tables(experiment: str, fixed: str) -> None:
    """Every number with a point in it, whatever its sign; what was fixed beforehand is none of them."""
    folder = ROOT / "experiments" / experiment
    told = (folder / "README.md").read_text(encoding="utf-8").split("## What came out")[1].replace(fixed, "")
    cells = [
        cell for path in (folder / "reports" / "tables").glob("*.csv") for row in read(path) for cell in row.values()
    ]
    values = [float(number) for cell in cells for number in re.findall(r"\d+(?:\.\d+)?", cell)]
    known = {f"{value:.{digits}f}" for value in values for digits in (0, 1, 2, 3)}
    stated = re.findall(r"\d+\.\d+", told)
    assert stated
    assert [number for number in stated if number not in known] == []


def test_what_is_said_of_full_scale_is_what_its_trials_found() -> None:
    """Differences of validation losses: each run at its best, and pooling at the first guess."""
    losses: dict[str, dict[float, float]] = {}
    for row in read(ROOT / "experiments" / "full" / "reports" / "tables" / "tuning.csv"):
        losses.setdefault(row["run"], {})[float(row["knobs"].partition("=")[2])] = float(row["validation_loss"])
    best = {run: min(tried.values()) for run, tried in losses.items()}
    pull = best["fedprox-local"]
    text = " ".join((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split())
    for told in (
        f"pooling gains {losses['single'][0.0006] - losses['centralized'][0.0006]:.3f} nats over AdaSingle",
        f"at the best rates it gains {best['single'] - best['centralized']:.3f}",
        f"{best['centralized'] - pull:.3f} nats below AdaCentralized and {best['fedavg-local'] - pull:.3f} below",
        f"0.01 is already {losses['fedprox-local'][0.01] - pull:.3f} nats worse",
    ):
        assert told in text
