"""What faults cost, worked by hand; and the plan of the experiment that ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from made_results import AVERAGE, CLASSIFY, order_of
from markupsafe import Markup
from workspaces import stand_ins

from pipeline.plan.checks import read_params
from pipeline.plan.resolve import resolve
from pipeline.report.faults_page import AtSeed, draw, render, row_of, tables_of

PLAIN = {1: AtSeed(60.0, [2.0, 1.0], [60.0, 120.0], {}), 2: AtSeed(64.0, [2.0, 1.2], [60.0, 180.0], {})}
WORSE = {
    1: AtSeed(55.0, [2.0, 1.5], [60.0, 120.0], {"missing": 3, "arrived": 9}),
    2: AtSeed(57.0, [2.0, 1.5], [60.0, 120.0], {"missing": 1, "skipped": 1}),
}


def test_differences_are_taken_seed_by_seed() -> None:
    """55 − 60 = −5 and 57 − 64 = −7: mean −6, error 1. Scores alone spread by 2 and by 4."""
    row = row_of("worse", WORSE, PLAIN)
    assert (row["accuracy"], row["less_undisturbed"]) == (56.0, -6.0)
    assert row["half_interval_of_it"] == pytest.approx(12.71)
    assert row["simulated_minutes"] == 2.0
    assert row["events"] == "2.0 missing, 0.5 skipped", "counts a training; arrivals are none"
    assert row_of("plain", PLAIN, PLAIN)["events"] == "none"


def test_a_poisoned_run_is_compared_with_the_clean_mean() -> None:
    made = {"clean-mean": PLAIN, "one-mean": WORSE, "one-median": PLAIN}
    (first, second) = tables_of(made, {"one": ["one-mean", "one-median"]})["one"]
    assert (first["less_undisturbed"], second["less_undisturbed"]) == (-6.0, 0.0)


def test_a_table_without_results_has_no_rows() -> None:
    tables = tables_of({}, {"dropout": ["dropout-0"], "one": ["one-mean"]})
    assert tables == {"dropout": [], "one": []}
    assert "dropout-0" not in page_of(tables)
    assert "None of its runs has results" in page_of({}), "without its sections"


def page_of(tables: dict[str, Any], figures: dict[str, Markup] | None = None, samples: tuple[str, ...] = ()) -> str:
    order = order_of([], data={"notices": CLASSIFY})
    return render(order, tables, figures or {}, question="Q?", effects="", seeds=2, samples=samples)


def test_a_users_data_and_sections_are_on_the_page() -> None:
    page = page_of(tables_of({"plain": PLAIN}, {"mine": ["plain"]}))
    assert "notices under a frozen tiny-llama" in page
    assert "plain" in page.partition('<h2 id="mine">')[2]


def test_the_page_has_every_table_and_figure(tmp_path: Path) -> None:
    kinds = ("mean", "median", "trimmed", "clipped", "krum")
    made = {f"{count}-{kind}": PLAIN for count in ("clean", "one", "two") for kind in kinds}
    made |= {"dropout-0": PLAIN, "dropout-20": WORSE, "slow-wait": PLAIN}
    wanted = {
        **{count: [f"{count}-{kind}" for kind in kinds] for count in ("clean", "one", "two")},
        "dropout": ["dropout-0", "dropout-20", "dropout-40"],
        "stragglers": ["slow-wait"],
    }
    with stand_ins():
        figures = draw(made, wanted, [], AVERAGE, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == {"dropout", "stragglers", "poison"}
    text = page_of(tables_of(made, wanted), figures, ("20news",))
    for words in ("dropout-20", "two-krum", "slow-wait", "2.0 missing", "SAMPLE", "<img"):
        assert words in text
    assert "dropout-40" not in text


def test_the_experiment_that_ships_can_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "experiments" / "faults")
    params = read_params()
    orders = resolve(params)
    assert orders["train/dropout-40.json"]["training"]["faults"]["dropout"] == 0.4
    assert orders["train/slow-buffer.json"]["training"]["hyperparameters"]["buffer"] == 5
    assert "faults" not in orders["train/clean-mean.json"]["training"]
    assert any("pages.faults" in name for name in orders["report.json"]["code"])
    assert {run for runs in params.sections.values() for run in runs} == set(params.runs)
