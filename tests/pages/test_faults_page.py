"""What faults cost, worked by hand; the page on them; and the plan of the experiment that ships."""

from pathlib import Path
from typing import Any

import pytest
from made_results import CLASSIFY, order_of, row_of, save_results
from workspaces import stand_ins

from pipeline.pages import faults
from pipeline.pages.faults import row_of as faults_row
from pipeline.report.task_tables import Outcome
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.tables import read_table


def seed_of(accuracy: float, losses: list[float], minutes: float, **events: int) -> dict[str, Any]:
    """A result of one text, a round a loss, which ends after so many minutes."""
    clock = {"bytes_up": "0", "bytes_down": "0", "simulated_seconds": str(60.0 * minutes)}
    history = [{"round": str(n), "validation_loss": str(loss)} | clock for n, loss in enumerate(losses, 1)]
    text = {"id": "t", "group": "t", "client": "server", "accuracy": accuracy}
    return {"scores": {"examples": [text]}, "history": history, "events": events}


def outcome(name: str, *seeds: dict[str, Any]) -> Outcome:
    return Outcome(row_of(name, data=["news"]), load_task(CLASSIFY).metrics, dict(enumerate(seeds, 1)))


PLAIN = outcome("plain", seed_of(60.0, [2.0, 1.0], 2), seed_of(64.0, [2.0, 1.2], 3))
WORSE = outcome(
    "worse",
    seed_of(55.0, [2.0, 1.5], 2, missing=3, arrived=9),
    seed_of(57.0, [2.0, 1.5], 2, missing=1, skipped=1),
)


def test_differences_are_taken_seed_by_seed() -> None:
    """55 − 60 = −5 and 57 − 64 = −7: mean −6, error 1. Scores alone spread by 2 and by 4."""
    row = faults_row(WORSE, PLAIN)
    assert (row["accuracy"], row["less_undisturbed"]) == (56.0, -6.0)
    assert row["half_interval_of_it"] == pytest.approx(12.71)
    assert (row["development_loss"], row["simulated_minutes"]) == (1.5, 2.0)
    assert row["events"] == "2.0 missing, 0.5 skipped", "counts a training; arrivals are none"
    assert faults_row(PLAIN, PLAIN)["events"] == "none"


def test_the_page_has_a_table_and_a_figure_a_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is compared with the first of its section; a table whose runs have no results has no rows."""
    monkeypatch.chdir(tmp_path)
    layout.COMPARISONS.write_text("question: Q?\n", encoding="utf-8")
    sections = {"dropout": ["plain", "worse"], "mine": ["worse", "gone"], "empty": ["gone"]}
    rows = [row_of(name, method="AdaFedAvg", data=["20news"]) for name in ("plain", "worse", "gone")]
    for row, accuracy in zip(rows[:2], (60.0, 55.0), strict=True):
        result = seed_of(accuracy, [2.0, 1.0], 2, missing=2)
        sample = {"source": {"20news": {"source": "sample", "commit": None}}}
        texts = [one | {"loss_sum": 1.0, "items": 1} for one in result["scores"]["examples"]]
        save_results(row, scores=texts, history=result["history"], events=result["events"], **sample)
    with stand_ins():
        faults.run(order_of(rows, data={"20news": CLASSIFY}, settings={}, sections=sections, backbone="tiny-bert"))
    assert {path.stem for path in layout.FIGURES.glob("*.png")} == {"dropout", "mine"}
    assert [row["less_undisturbed"] for row in read_table(layout.TABLES / "dropout.csv")] == ["0.0", "-5.0"]
    page = layout.REPORT.read_text(encoding="utf-8")
    for words in ("20news under a frozen tiny-bert", "2.0 missing", "SAMPLE of 20news", "<img", "random weights"):
        assert words in page
    assert "worse" in page.partition('<h2 id="mine">')[2]
    assert "None of its runs has results" in page.partition('<h2 id="empty">')[2]
    assert "gone" not in page
