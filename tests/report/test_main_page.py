"""The page on the main table: its rows, marks and notes, from numbers worked by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from made_results import SUMMARIZE, figures, order_of, results_of, round_of, row_of, run_of

from pipeline.evaluation.comparisons import Comparison, Comparisons, Effect
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures, Scored
from pipeline.federated.history import Round
from pipeline.pages.main import _say_missing
from pipeline.report.main_data import MainData
from pipeline.report.main_figures import draw
from pipeline.report.main_page import _paper_rows, _pos_shares, main_rows, render, rows_are_of
from pipeline.report.naming import colours, labels
from pipeline.report.summaries import cases, lens
from pipeline.runs.results import Results
from pipeline.runs.truncation import Cut
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace.tables import read_table

METRICS = (*load_task(SUMMARIZE).metrics, LOSS)


def scores(**values: float) -> Figures:
    """Every metric of the page, by default 1, with intervals of half a point to both sides."""
    return figures(7, spread=0.5, **{metric.name: values.get(metric.name, 1.0) for metric in METRICS})


def page_of(results: Results, **parts: Any) -> MainData:
    order = order_of([row for rows in results.rows.values() for row in rows])
    known = {
        "comparisons": Comparisons(question="Q?"),
        "effects": (),
        "source": {},
        "cut": Cut(0, 0, 1.0, 1.0, 0, 160),
        "paper": (),
    }
    return MainData(order=order, results=results, metrics=METRICS, **known | parts)


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({}, ""),
        ({"missing": ["x-1"]}, "report: no result yet of x-1; `dvc repro` trains them\n"),
        (
            {"missing": ["x-1"], "deleted": ["results/x.gz"]},
            "report: warning: the page is without deleted results; `git checkout results/x.gz` restores them\n",
        ),
    ],
)
def test_what_a_page_lacks_is_printed_with_the_remedy(
    parts: dict[str, Any], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _say_missing(page_of(results_of(), **parts))
    assert capsys.readouterr().err == line


# --- the main table -------------------------------------------------------------------------------------------------


def group_of(metric: str, **values: float) -> dict[str, Any]:
    """Client A's rows of the main table, of runs with these values of a metric and no training."""
    own = {run: scores(**{metric: value}) for run, value in values.items()}
    results = results_of(
        rows={run: run_of(run) for run in values},
        metrics={run: {"A": found, "mean": found} for run, found in own.items()},
        histories={run: [] for run in values},
    )
    return main_rows(page_of(results), results, {run: run for run in values})[0]


def cells(group: dict[str, Any], metric: str) -> dict[str, tuple[str, str]]:
    """Run -> (its text, its rank) in the column of a metric."""
    place = [one.name for one in METRICS].index(metric)
    return {row["label"]: (row["cells"][place]["text"], row["cells"][place]["rank"]) for row in group["rows"]}


def test_a_group_a_client_and_one_for_the_mean() -> None:
    results = results_of(
        rows={"x": run_of("x")},
        metrics={"x": {client: scores() for client in ("A", "B", "mean")}},
        histories={"x": []},
    )
    groups = main_rows(page_of(results), results, {"x": "X"})
    assert [(group["client"], group["examples"]) for group in groups[:2]] == [("A", 7), ("B", 7)]
    assert [[row["label"] for row in group["rows"]] for group in groups] == [["X"]] * 3


def test_a_cell_has_the_digits_of_its_metric_and_its_interval() -> None:
    (row,) = group_of("average", x=20.126)["rows"]
    average, loss = row["cells"][0], row["cells"][-1]
    assert (average["text"], average["interval"]) == ("20.13", "19.63 … 20.63")
    assert (loss["text"], loss["interval"]) == ("1.000", "0.500 … 1.500")


@pytest.mark.parametrize(
    ("metric", "values", "texts"),
    [
        ("average", (20.0, 21.0, 19.0), ["20.00††", "21.00†", "19.00"]),
        ("loss", (2.5, 2.9, 2.7), ["2.500†", "2.900", "2.700††"]),
        ("length", (1.0, 2.0, 3.0), ["1.0", "2.0", "3.0"]),
        ("repetition", (1.0, 2.0, 3.0), ["1.0", "2.0", "3.0"]),
        ("average", (21.001, 21.004, 20.0), ["21.00†", "21.00†", "20.00††"]),
        ("average", (21.001, 21.004, 21.0), ["21.00", "21.00", "21.00"]),
    ],
    ids=["more", "less", "no better for being long", "not ranked", "two are shown alike", "all are shown alike"],
)
def test_the_best_and_the_second_of_a_column_are_marked(
    metric: str, values: tuple[float, ...], texts: list[str]
) -> None:
    found = cells(group_of(metric, **dict(zip("xyz", values, strict=True))), metric)
    assert [text for text, _ in found.values()] == texts
    ranks = {"†": "best", "††": "second", "": ""}
    assert [rank for _, rank in found.values()] == [ranks[text.lstrip("0123456789.")] for text in texts]


def test_a_mean_length_has_its_ratio_to_the_references() -> None:
    """44 words where the references have 40."""
    own = replace(scores(length=44.0), metrics=scores(length=44.0).metrics | {"reference_length": Interval(40, 39, 41)})
    results = results_of(rows={"x": run_of("x")}, metrics={"x": {"A": own, "mean": own}}, histories={"x": []})
    group = main_rows(page_of(results), results, {"x": "x"})[0]
    assert cells(group, "length")["x"][0] == "44.0 (1.10)"


# --- best rounds ----------------------------------------------------------------------------------------------------


def history(best: int, last: int) -> list[Round]:
    """Training losses fall by 0.1 a round."""
    return [round_of(n, "A", 2.0, train_loss=3.0 - n / 10, best=n == best) for n in range(1, last + 1)]


def note(rounds: list[Round], *, patience: int) -> str:
    """The note in A's row, of a run whose last rounds have a mean test loss of 2.5."""
    own = {"A": replace(scores(), other_losses={"last": 2.5}), "mean": scores()}
    results = results_of(rows={"x": [row_of("x", patience=patience)]}, metrics={"x": own}, histories={"x": rounds})
    return str(main_rows(page_of(results), results, {"x": "x"})[0]["rows"][0]["note"])


def test_an_earlier_best_round_is_shown_with_the_last_ones_loss() -> None:
    assert note(history(2, 3), patience=1) == "2 (test loss of round 3: 2.500)"


def test_each_seed_has_a_best_and_a_last_round_of_its_own() -> None:
    """The second seed stopped two rounds earlier; the loss is the mean of both."""
    rows = history(3, 5) + [replace(one, seed=2) for one in history(2, 3)]
    assert note(rows, patience=1) == "3, 2 (test loss of round 5/3: 2.500)"


def test_a_run_without_training_has_no_round() -> None:
    assert note([], patience=1) == ""


def test_a_table_says_at_which_seeds_its_rows_were_trained_and_on_how_many_meetings_they_are_tested() -> None:
    """m1 and m2 of client A, m3 of client B; m1 has two examples."""
    places = (("e1", "A", "m1"), ("e2", "A", "m1"), ("e3", "A", "m2"), ("e4", "B", "m3"))
    scored = {"x": [Scored(example, client, meeting, 1, {"loss": 2.0}) for example, client, meeting in places]}
    rows = [row_of("x", seed) for seed in (11, 12, 13)]
    found = {count: rows_are_of(results_of(rows={"x": rows[:count]}, scored=scored)) for count in (1, 3)}
    assert found == {
        1: "These rows are of seed 11 alone, tested on 3 meetings.",
        3: "These rows are of seeds 11, 12 and 13, tested on 3 meetings.",
    }


# --- the page --------------------------------------------------------------------------------------------------------


def rendered(folder: Path, **parts: Any) -> str:
    """The page of two runs, each with two rounds on client A at seeds 11 and 12; its figures are cut out."""
    runs = {run: [row_of(run, seed) for seed in (11, 12)] for run in ("ours", "theirs")}
    scored = [Scored(f"e{n}", "A", f"m{n}", 1, {"loss": 2.0}) for n in range(3)]
    results = results_of(
        rows=runs,
        scored=dict.fromkeys(runs, scored),
        metrics={run: {"A": replace(scores(), other_losses={"last": 2.5}), "mean": scores()} for run in runs},
        histories={run: [replace(one, seed=seed) for seed in (11, 12) for one in history(1, 2)] for run in runs},
        by_seed={seed: {run: {"A": scores(), "mean": scores()} for run in runs} for seed in (11, 12)},
    )
    known: dict[str, Any] = {
        "source": {"source": "qmsum", "commit": "abc"},
        "paper": read_table(ROOT / "data" / "paper_results.csv"),
        "seeds": {11: "A", 12: "B"},
    }
    data = page_of(results, **known | parts)
    draw(data, folder)
    return re.sub(r'src="data:[^"]*"', "", render(data, folder))


def texts_of(page: str) -> list[str]:
    """The text of each cell of its tables, in order, with its small print."""
    return [re.sub(r"<[^>]*>", " ", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)]


def test_a_page_has_effects_sensitivities_and_scores(tmp_path: Path) -> None:
    one = Comparison(name="c", statement="S", terms={"ours": 1, "theirs": -1}, effects={"average": 0.93})
    effect = Effect(one, "average", Interval(0.5, 0.1, 0.9), p=0.02, by_seed={11: 0.4, 12: 0.6}, p_seeds=0.25)
    changed = replace(effect, interval=Interval(0.7, 0.3, 1.1))
    comparisons = Comparisons(question="Q?", deviations="D.")
    text = rendered(
        tmp_path,
        comparisons=comparisons,
        effects=[effect],
        sensitivities=[("changed thus", [changed])],
        missing=["x-1"],
    )
    cells = texts_of(text)
    for cell in ("S ours − theirs *", "+0.50 (+0.10 … +0.90)", "0.020", "A +0.40, B +0.60 Q: p 0.250", "+0.93"):
        assert cell in cells
    assert "+0.70 (+0.30 … +1.10) p 0.020" in cells
    for part in ("Q?", "x-1", 'id="deviations"', 'href="#deviations"', "changed thus"):
        assert part in text


def test_a_page_without_comparisons_has_no_empty_parts(tmp_path: Path) -> None:
    text = rendered(tmp_path, cut=None)
    for part in ("forest", 'id="sensitivities"', "#deviations", 'class="answer"', "SAMPLE"):
        assert part not in text
    assert "SAMPLE" in rendered(tmp_path, source={"source": "sample", "commit": None})


# --- names ----------------------------------------------------------------------------------------------------------


def test_a_second_run_of_a_method_adds_its_own_name() -> None:
    parts = (("fedavg", "AdaFedAvg"), ("slow", "AdaFedAvg"), ("fedavg-local", "AdaFedAvg-local"))
    found = labels([row_of(name, part=part) for name, part in parts])
    assert found == {"fedavg": "AdaFedAvg", "slow": "AdaFedAvg (slow)", "fedavg-local": "AdaFedAvg-local"}


def test_a_method_has_one_colour() -> None:
    found = colours(
        [row_of(name, part=part) for name, part in (("a", "AdaFedKD"), ("fedavg", "AdaFedAvg"), ("b", "AdaFedKD"))]
    )
    assert found["a"] == found["b"] != found["fedavg"]


# --- words, summaries, the paper's table ----------------------------------------------------------------------------


def test_a_clients_distilled_words_are_shown_with_the_papers() -> None:
    shares = [
        {"client": "Academic", "share": share, "value": value, "low": low, "high": high}
        for share, value, low, high in (
            ("distilled", "0.861", "0.8", "0.9"),
            ("content_given_distilled", "0.5", "0.4", "0.6"),
        )
    ]
    shares += [
        {"client": client, "share": share, "value": value, "low": "", "high": ""}
        for client, share, value in (
            ("Academic", "all_subwords", "0.7"),
            ("Academic", "fraction", "0.75"),
            ("Clinic", "fraction", "1"),
        )
    ]
    academic, clinic = _pos_shares(page_of(results_of(), shares=shares))
    assert academic == {
        "client": "Academic",
        "share": "86.1% (80.0 … 90.0)",
        "all_subwords": "70.0%",
        "fraction": "75.0%",
        "paper": "86%",
        "nouns_verbs": "50.0% (40.0 … 60.0)",
    }
    assert (clinic["share"], clinic["paper"], clinic["nouns_verbs"]) == ("–", "–", "–")


def test_a_word_under_the_lens_has_its_first_tokens_entropy() -> None:
    """τ = 2: a word at 1 nat is distilled, one at 3 is not. The darkest is at 2 τ = 4 nats. A dot is no word."""
    item = {"id": "e", "client": "A", "pieces": ["We", " meet", "ing", "."], "entropy": [1.0, 3.0, 9.0, 0.5]}
    texts = {"run": [{"id": "e", "query": "Q?"}]}
    (shown,) = lens([item], 2.0, texts)
    assert (shown["client"], shown["query"]) == ("A", "Q?")
    assert [(word["text"], word["entropy"], word["distilled"]) for word in shown["words"]] == [
        ("We", 1.0, True),
        (" meeting", 3.0, False),
        (".", 0.5, False),
    ]
    assert [word["shade"] for word in shown["words"]] == [pytest.approx(0.15), pytest.approx(0.45), 0.0]


def test_a_case_a_client_has_every_runs_summary_of_one_example() -> None:
    rows = [
        {"id": f"{client}{n}", "client": client, "query": f"Q {client}{n}", "reference": f"R {client}{n}"}
        for client in "AB"
        for n in range(3)
    ]
    predictions = {run: [row | {"prediction": f"{run} on {row['id']}"} for row in rows] for run in ("x", "y")}
    found = cases(predictions, {"x": "X", "y": "Y"})
    assert [case["client"] for case in found] == ["A", "B"]
    for case in found:
        identity = case["query"].removeprefix("Q ")
        assert case["reference"] == f"R {identity}"
        assert case["rows"] == [{"label": run.upper(), "text": f"{run} on {identity}"} for run in ("x", "y")]


def test_the_papers_table_has_three_clients_of_three_scores() -> None:
    rows = _paper_rows(read_table(ROOT / "data" / "paper_results.csv"), "IV")
    assert [row["method"] for row in rows] == [
        "AdaSingle",
        "AdaCentralized",
        "AdaFedAvg",
        "AdaFedKD",
        "AdaFedSelectKD",
    ]
    assert all(len(row["cells"]) == 9 for row in rows)
