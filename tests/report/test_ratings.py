"""Human ratings: which examples are drawn, what a sheet shows, what an import accepts."""

import html
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from made_results import SUMMARIZE, order_of, row_of, save_results
from workspaces import stand_ins

from pipeline.corpora.conversation import Conversation, Turn
from pipeline.corpora.example import examples_of, write_examples
from pipeline.errors import QuorumError
from pipeline.federated.methods import OURS
from pipeline.plan.orders import EvaluateOrder, RunRow
from pipeline.report.page import page
from pipeline.report.ratings import CRITERIA, METHODS, current_ratings, draw, export, import_ratings
from pipeline.runs.result_files import read_results_of
from pipeline.stages.evaluate import _scored
from pipeline.workspace.files import read_jsonl, write_jsonl, write_text
from pipeline.workspace.layout import RATING_SHEETS, examples, order, predictions, rating_key, ratings_table
from pipeline.workspace.tables import read_table

Sheet = list[dict[str, str]]
FIRST, SECOND, THIRD = CRITERIA
JSON = '{"sheet": "%s", "rater": "%s", "answers": {"i": {"%s": "%s"}}}'
WRONG = [
    ("x.json", '{"sheet": "a", "answers": {}}', "rater: is missing"),
    ("x.json", '{"sheet": "a", "rater": "r", "answers": {}}', "has no ratings"),
    ("x.json", JSON % ("a", " ", FIRST, "A"), "rater: "),
    ("x.json", JSON % ("a", "r", "beauty", "A"), "beauty"),
    ("x.json", JSON % ("a", "r", FIRST, "C"), "found 'C'"),
    ("x.json", JSON % ("a", "r", FIRST, "A"), "item 'i' has no key"),
    ("x.json", JSON % ("../keys", "r", FIRST, "A"), "sheet: "),
    ("x.json", "\xff", "x.json: is not a filled sheet"),
    ("x.csv", "", "has no ratings"),
    ("x.csv", "sheet,item\na,i\n", FIRST),
]


@pytest.mark.parametrize(("count", "expected"), [(0, ""), (2, "xy"), (3, "xxy"), (4, "xxxy"), (9, "xxxxy")])
def test_the_draw_is_even_over_meetings(count: int, expected: str) -> None:
    """Meeting x has four examples and y has one."""
    meetings = {"a": "x", "b": "x", "c": "x", "d": "x", "e": "y"}
    chosen = draw(meetings, count, seed=1)
    assert len(set(chosen)) == len(chosen)
    assert "".join(sorted(meetings[name] for name in chosen)) == expected


@pytest.fixture
def runs(short: Path) -> list[RunRow]:
    """A main table of four methods, with one client and 24 test examples of 6 meetings; and runs that do not count."""
    # Not counted are a run of another setting, one that is left out, and a second run and seed of a method.
    found, average = [row_of(m, part=m) for m in METHODS], {"part": "AdaFedAvg"}
    others = [row_of("other", setting="iid", **average), row_of("out", left_out="is a run of scale full", **average)]
    again = [row_of("AdaFedAvg", 2, **average), row_of("again", **average)]
    write_text(order("report"), order_of([*others, *found, *again], settings={}).model_dump_json())
    turns = (Turn("Ann", "We </script> agree."),)
    tests = [Conversation(f"e{n}", "qmsum", "A", "test", f"m{n % 6}", "Q?", turns, "Agreed.") for n in range(24)]
    write_examples(examples("qmsum"), tests)
    for n, run in enumerate(found):
        predict(run, {one.id: f"{n} on {one.id}" for one in tests})
    return [*others, *found, *again]


def predict(run: RunRow, texts: dict[str, str | None]) -> None:
    """Write a run's predictions: example -> text, or None where it writes none."""
    write_jsonl(predictions(run.id), ({"id": i, "client": "A", "prediction": text} for i, text in texts.items()))


def evaluated(runs: list[RunRow]) -> dict[str, Any]:
    """The results of the runs that have predictions, with the hashes that `evaluate` writes."""
    made, tests = [run for run in runs if predictions(run.id).is_file()], examples_of(["qmsum"], Conversation)
    known: dict[str, Any] = {"task": SUMMARIZE, "data": ["qmsum"], "seeds": [1], "fingerprints": {1: "f"}, "code": {}}
    how = EvaluateOrder(setting="domains", use_stemmer=False, learner=None, **known)
    for run in made:
        lines = [line | {"ended": True} for line in read_jsonl(predictions(run.id))]
        with stand_ins():
            save_results(run, scores=_scored(how, lines, tests))
    return read_results_of(made)


@pytest.fixture
def sheets(runs: list[RunRow]) -> list[Sheet]:
    """The tables of two raters."""
    export(2, 1)
    return [read_table(RATING_SHEETS / f"rater-{rater}.csv") for rater in (1, 2)]


def key_of(sheet: Sheet) -> dict[str, dict[str, str]]:
    """A sheet's key: item -> the methods behind A and B, and what they summarize."""
    return dict(json.loads(rating_key(sheet[0]["sheet"]).read_text()))


def exported(sheet: Sheet, answers: dict[str, dict[str, str]] | None = None, rater: str = "EB") -> Path:
    """A file as the page exports it; unless given, the answers are A to the first item."""
    content = {"sheet": sheet[0]["sheet"], "rater": rater, "answers": answers or {sheet[0]["item"]: {FIRST: "A"}}}
    Path(f"{rater}.json").write_text(json.dumps(content))
    return Path(f"{rater}.json")


def test_sheets_have_twenty_examples_against_each_of_three_in_another_order(sheets: list[Sheet]) -> None:
    first, second = [[row["item"] for row in sheet] for sheet in sheets]
    assert len(set(first)) == len(first) == 20 * 3
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_sheet_is_blind(sheets: list[Sheet]) -> None:
    for path in RATING_SHEETS.iterdir():
        assert not [name for name in (*METHODS, "meeting", "example") if name in path.read_text()], path
    html_page = (RATING_SHEETS / "rater-1.html").read_text()
    assert html_page.count("</script>") == 1, "no text of a meeting can end the script"
    assert "http" not in html_page


def test_the_key_names_the_methods_behind_a_and_b(sheets: list[Sheet]) -> None:
    key = key_of(sheets[0])
    for row in sheets[0]:
        behind = key[row["item"]]
        assert [row[s] for s in "AB"] == [f"{METHODS.index(behind[s])} on {behind['example']}" for s in "AB"]
    assert 15 < sum(one["A"] == OURS for one in key.values()) < 45, "ours is on both sides"
    drawn = [one["meeting"] for one in key.values()]
    assert {drawn.count(meeting) for meeting in drawn} <= {9, 12}, "three or four examples of each of six meetings"


def test_a_table_without_one_of_the_methods_is_refused(runs: list[RunRow]) -> None:
    write_text(order("report"), order_of(runs[:4], settings={}).model_dump_json())
    with pytest.raises(QuorumError, match="no run of AdaFedAvg"):
        export(1, 1)


def test_an_import_joins_answers_with_the_key(sheets: list[Sheet]) -> None:
    item, behind = next(iter(key_of(sheets[0]).items()))
    ours, theirs = ("A", "B") if behind["A"] == OURS else ("B", "A")
    import_ratings([exported(sheets[0], {item: {FIRST: ours, SECOND: "tie", THIRD: theirs}})])
    rows = read_table(ratings_table())
    assert [row["outcome"] for row in rows] == ["win", "tie", "loss"]
    same = {"rater": "EB", "client": "A", "example": behind["example"], "against": behind[theirs]}
    assert all(row | same == row for row in rows)


def test_a_second_import_of_a_sheet_replaces_it(sheets: list[Sheet], capsys: pytest.CaptureFixture[str]) -> None:
    """Under another name too: counted twice, one person's ratings would narrow the intervals and raise kappa."""
    import_ratings([exported(sheets[0])])
    import_ratings([exported(sheets[0], rater="Eva")])
    assert [row["rater"] for row in read_table(ratings_table())] == ["Eva"]
    assert "replaced those of EB" in capsys.readouterr().err


def test_two_raters_of_one_sheet_are_refused(sheets: list[Sheet]) -> None:
    with pytest.raises(QuorumError, match="has two raters"):
        import_ratings([exported(sheets[0], rater=rater) for rater in ("ann", "bob")])
    assert not ratings_table().exists()


def test_one_rater_of_two_sheets_is_refused(sheets: list[Sheet]) -> None:
    """All sheets have the same pairs."""
    answers = {sheets[0][0]["item"]: {FIRST: "A"}}
    import_ratings([exported(sheets[0], answers), exported(sheets[1], answers, rater="Ann")])
    with pytest.raises(QuorumError, match=f"EB has rated item {sheets[0][0]['item']} twice"):
        import_ratings([exported(sheets[1], answers)])
    assert [row["rater"] for row in read_table(ratings_table())] == ["EB", "Ann"]


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_table_from_a_spreadsheet_is_imported(sheets: list[Sheet], separator: str) -> None:
    """A byte order mark, a suffix in capitals, an empty row, and a longer transcript than csv's limit."""
    cells = [sheets[0][0]["sheet"], f" {sheets[0][0]['item']}", "x" * 140_000, "A", "", "tie"]
    lines = [separator.join(row) for row in (["sheet", "item", "transcript", *CRITERIA], cells, [""] * 6)]
    Path("ANN.CSV").write_text("\n".join(lines), encoding="utf-8-sig")
    import_ratings([Path("ANN.CSV")])
    assert [(row["rater"], row["criterion"]) for row in read_table(ratings_table())] == [("ANN", FIRST), ("ANN", THIRD)]
    Path("ANN.CSV").write_text("\n".join([*lines, lines[1]]))
    with pytest.raises(QuorumError, match="ANN has rated item"):
        import_ratings([Path("ANN.CSV")])


@pytest.mark.parametrize(("name", "content", "message"), WRONG)
def test_a_wrong_file_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="latin-1")
    with pytest.raises(QuorumError, match=message):
        import_ratings([tmp_path / name])


def test_ratings_of_former_summaries_are_left_out(
    runs: list[RunRow], sheets: list[Sheet], capsys: pytest.CaptureFixture[str]
) -> None:
    """AdaFedKD's summaries change after they were rated, and AdaFedAvg writes none: both ratings are left out."""
    assert current_ratings(runs, evaluated(runs)) == []
    items = {one["B"] if one["A"] == OURS else one["A"]: item for item, one in key_of(sheets[0]).items()}
    import_ratings([exported(sheets[0], {item: {FIRST: "A"} for item in items.values()})])
    assert {row["against"] for row in current_ratings(runs, evaluated(runs))} == set(METHODS[1:])
    predict(row_of("AdaFedKD"), {f"e{n}": "new" for n in range(24)})
    predict(row_of("AdaFedAvg"), {f"e{n}": None for n in range(24)})
    assert {row["against"] for row in current_ratings(runs, evaluated(runs))} == {"AdaCentralized"}
    assert "2 of 3 are of summaries that have changed" in capsys.readouterr().err
    with pytest.raises(QuorumError, match="no run of AdaFedAvg"):
        export(1, 1)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="left out: no Chromium to open the page in")
def test_the_page_saves_answers(tmp_path: Path) -> None:
    """Of two pairs with three criteria three are judged, one of them twice."""
    items = [{"item": f"i{n}", "client": "A", "query": "q", "transcript": "", "A": "", "B": ""} for n in range(2)]
    chosen = [(f"i0/{FIRST}", "A"), (f"i0/{SECOND}", "B"), (f"i0/{SECOND}", "tie"), (f"i1/{FIRST}", "tie")]
    rater = (
        f"<script>for (const [name, value] of {json.dumps(chosen)})"
        " document.querySelector(`[name='${name}'][value='${value}']`).click();"
        "document.title = localStorage.getItem(place) + document.querySelector('progress').value;</script></body>"
    )
    sheet = page("rating_sheet.html.j2", sheet="abc", criteria=CRITERIA, items=items)
    (tmp_path / "sheet.html").write_text(sheet.replace("</body>", rater), encoding="utf-8")
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    opened = [*browser, "--dump-dom", (tmp_path / "sheet.html").as_uri()]
    rated = subprocess.run(opened, capture_output=True, text=True, timeout=120, check=True).stdout
    saved, _, done = html.unescape(rated.split("<title>")[1].split("</title>")[0]).rpartition("}")
    assert json.loads(saved + "}") == {"rater": "", f"i0/{FIRST}": "A", f"i0/{SECOND}": "tie", f"i1/{FIRST}": "tie"}
    assert done == "3"
