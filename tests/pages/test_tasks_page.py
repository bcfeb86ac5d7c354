"""The pages on tasks with labels, on federations and on faults, from results in files."""

from pathlib import Path
from typing import Any

import pytest
from made_results import CLASSIFY, LEARNER, TRAINING, order_of, row_of, save_results
from workspaces import stand_ins

from pipeline.pages import faults, tasks
from pipeline.pages.faults import row_of as faults_row
from pipeline.pages.files import drawn_of, write_gallery
from pipeline.plan.orders import RunRow
from pipeline.report.task_tables import Outcome
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.tables import read_table, write_table

FROZEN = LEARNER.view.model_copy(update={"frozen": "e,0-1"})
ENCODER = LEARNER.model_copy(update={"task": CLASSIFY, "above": "layers", "view": FROZEN})
TRAINED = TRAINING.model_copy(update={"learner": ENCODER})
SKEWED: dict[str, Any] = {"data": "news", "kind": "skewed", "clients": 2}
SETTINGS = {"tc": SKEWED | {"alpha": 1.0}, "tc-10": SKEWED | {"alpha": 10.0}}
PAPER = [
    {"table": table, "task": "text classification", "dataset": "20news", "metric": "accuracy_fraction", "value": value}
    | {"method": method}
    for table, method, value in (("2", "FedAvg", "0.5"), ("3", "FedAvg frozen=e,0-1", "61.5"))
]


def run_on(name: str, setting: str = "tc", **changes: Any) -> RunRow:
    """A run of AdaFedAvg on data set `news`, with the frozen part e,0-1."""
    own = {"method": "AdaFedAvg", "part": "AdaFedAvg", "evaluate": "server", "learner": ENCODER, "data": ["news"]}
    return row_of(name, setting=setting, training=TRAINED, **own | changes)


def scores(*accuracies: float) -> list[dict[str, Any]]:
    """Test texts of the server, of label x, at one nat each."""
    about = {"client": "server", "label": "x", "loss_sum": 1.0, "items": 1}
    return [{"id": f"t{n}", "group": f"t{n}", "accuracy": value} | about for n, value in enumerate(accuracies)]


FIRST, SECOND, OTHER = run_on("tc-fedavg"), run_on("tc-prox", method="AdaFedProx"), run_on("tc-10-fedavg", "tc-10")


@pytest.fixture(autouse=True)
def workspace(short: Path) -> None:
    """An experiment's folder with the results of three runs, and the files of other stages that the pages read."""
    comparison = "{name: c, statement: S, terms: {tc-prox: 1, tc-fedavg: -1}, effects: {accuracy: 3.0}, over: seeds}"
    layout.COMPARISONS.write_text(f"question: Q?\ncomparisons: [{comparison}]\nsettings: {{tc-10: {{alpha: 5.0}}}}\n")
    about = {"train": 8, "val": 2, "test": 4, "labels": 1, "owners": 0, "source": {"source": "mirror", "commit": None}}
    write_json(layout.notes("news"), about)
    for setting in SETTINGS:
        clients = {"clients": {"1": {"x": 6}, "2": {"x": 2}}, "unassigned": 3}
        write_json(layout.clients_of(setting), {"seeds": {"1": clients}})
    write_table(layout.paper("paper.csv"), PAPER)
    for row, accuracies in ((FIRST, (100, 0, 0, 0)), (SECOND, (100, 100, 0, 0)), (OTHER, (100, 100, 100, 0))):
        save_results(row, scores=scores(*accuracies))


def render(published: bool = True, **sections: list[str]) -> str:
    """The page on tasks of these runs and of one that is left out."""
    runs = [run_on("tc-deep", left_out="is a run of scale full"), FIRST, SECOND, OTHER]
    about = {"data": {"news": CLASSIFY}, "settings": SETTINGS, "sections": sections}
    about["paper"] = "paper.csv" if published else None
    with stand_ins():
        tasks.run(order_of(runs, published=["news"] if published else [], **about))
    return layout.REPORT.read_text(encoding="utf-8")


def column(table: str, name: str) -> dict[str, str]:
    """Run -> its cell in a column of a table in a file."""
    return {row["run"]: row[name] for row in read_table(layout.TABLES / f"{table}.csv")}


def test_each_setting_has_a_table_of_its_runs_with_the_papers_numbers() -> None:
    """The runs of `tc` and the majority label. The paper has FedAvg; `tc-10` is skewed differently from its."""
    page = render()
    assert column("methods-tc", "accuracy") == {"tc-fedavg": "25.0", "tc-prox": "50.0", "always x": "100.0"}
    assert column("methods-tc", "paper") == {"tc-fedavg": "50.0", "tc-prox": "", "always x": ""}
    assert list(column("methods-tc-10", "accuracy")) == ["tc-10-fedavg", "always x"]
    assert "paper" not in read_table(layout.TABLES / "methods-tc-10.csv")[0]
    assert "Skewed differently from the paper: tc-10." in page
    assert "tc-deep" not in page


def test_comparisons_and_metrics_are_of_all_test_texts() -> None:
    """50 − 25 = 25 points."""
    render()
    assert [row["effect"] for row in read_table(layout.COMPARISONS_TABLE)] == ["25.0"]
    assert read_json(layout.METRICS)["tc-10-fedavg"] == {"accuracy": 75.0}


def test_sections_choose_tables_and_runs() -> None:
    """The paper has a cut at e,0-1 with 61.5; the texts of the only client are all of them."""
    render(methods=["tc"], cuts=["tc-fedavg", "gone"], partitions=["tc-10-fedavg"], natural=["tc-prox"])
    assert not (layout.TABLES / "methods-tc-10.csv").exists()
    assert column("cuts", "paper") == {"tc-fedavg": "61.5"}
    assert list(column("partitions", "roughness")) == ["tc-10-fedavg"]
    assert column("natural-news", "server") == {"tc-prox": "50.0"}


def test_a_users_data_set_has_no_numbers_of_the_paper() -> None:
    page = render(published=False)
    for name in ("methods-tc", "data"):
        assert not [column for column in read_table(layout.TABLES / f"{name}.csv")[0] if column.startswith("paper")]
    assert "(Table 2, Fig. 4)" not in page


def test_settings_are_shown_with_their_skew_and_what_no_client_has() -> None:
    render()
    shown = read_table(layout.TABLES / "federations.csv")
    assert [(row["setting"], row["alpha"], row["beta"]) for row in shown] == [("tc", "1.0", ""), ("tc-10", "10.0", "")]
    assert (shown[0]["texts"], shown[0]["short"], shown[0]["held_by_nobody"]) == ("8", "2", "3")


def test_a_setting_with_examples_is_shown_in_the_gallery_at_its_first_seed() -> None:
    """3 and 5 texts: mean 4, standard deviation 1. (1, 0) and (.2, .8): H(.6, .4) = .971, less H(.2, .8) / 2 = .361."""
    first, second = {"1": {"x": 3}, "2": {"x": 1, "y": 4}}, {"1": {"y": 9}}
    write_json(layout.clients_of("tc"), {"seeds": {"1": {"clients": first}, "2": {"clients": second}}})
    write_json(layout.clients_of("empty"), {"seeds": {"1": {"clients": {"1": {}, "2": {}}}}})
    settings = {"tc": SKEWED | {"alpha": 0.5, "beta": 2.0}, "undrawn": SKEWED, "empty": SKEWED}
    with stand_ins():
        write_gallery(order_of([FIRST], data={"news": CLASSIFY}, settings=settings))
    page = layout.GALLERY.read_text(encoding="utf-8")
    assert "2 clients, 3 to 5 examples each (coefficient of variation 0.25); 0.61 bits apart on average" in page
    assert "tc, α = 0.5, β = 2." in page
    assert page.count("<h2") == page.count("<img ") == 1
    assert [path.name for path in layout.FIGURES.glob("*.svg")] == ["federation-tc.svg"]
    assert drawn_of("tc")[2]["clients"] == {"1": {"y": 9}}
    assert drawn_of("undrawn") == {}


def seed_of(accuracy: float, losses: list[float], minutes: float, **events: int) -> dict[str, Any]:
    """A result of one text, a round a loss, which ends after so many minutes."""
    clock = {"bytes_up": "0", "bytes_down": "0", "simulated_seconds": str(60.0 * minutes)}
    history = [{"round": str(n), "validation_loss": str(loss)} | clock for n, loss in enumerate(losses, 1)]
    text = {"id": "t", "group": "t", "client": "server", "accuracy": accuracy}
    return {"scores": {"examples": [text]}, "history": history, "events": events}


def outcome(name: str, *seeds: dict[str, Any]) -> Outcome:
    return Outcome(row_of(name, data=["news"]), load_task(CLASSIFY).metrics, dict(enumerate(seeds, 1)))


PLAIN = outcome("plain", seed_of(60.0, [2.0, 1.0], 2), seed_of(64.0, [2.0, 1.2], 3))
LOST = seed_of(55.0, [2.0, 1.5], 2, missing=3, arrived=9), seed_of(57.0, [2.0, 1.5], 2, missing=1, skipped=1)
WORSE = outcome("worse", *LOST)


def test_differences_are_taken_seed_by_seed() -> None:
    """55 − 60 = −5 and 57 − 64 = −7: mean −6, error 1. Scores alone spread by 2 and by 4."""
    row = faults_row(WORSE, PLAIN)
    assert (row["accuracy"], row["less_undisturbed"]) == (56.0, -6.0)
    assert row["half_interval_of_it"] == pytest.approx(12.71)
    assert (row["development_loss"], row["simulated_minutes"]) == (1.5, 2.0)
    assert row["events"] == "2.0 missing, 0.5 skipped", "counts a training; arrivals are none"
    assert faults_row(PLAIN, PLAIN)["events"] == "none"


def test_the_page_on_faults_has_a_table_and_a_figure_a_section() -> None:
    """A run is compared with the first of its section; a table whose runs have no results has no rows."""
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
