"""Human ratings: who is drawn, what a sheet shows, what comes back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpora.example import Example, Turn
from pipeline.errors import QuorumError
from pipeline.federated.methods import OURS
from pipeline.plan.orders import MainOrder, read_order
from pipeline.report.ratings.returned import bring_in
from pipeline.report.ratings.sheets import CRITERIA, Item, export, of_these_summaries, spread, write_sheet
from pipeline.workspace.files import write_json, write_jsonl
from pipeline.workspace.layout import encoded_index, examples, order, predictions, ratings_table


@given(
    st.dictionaries(st.text("abc123", min_size=1, max_size=5), st.sampled_from("xyz"), max_size=30), st.integers(0, 20)
)
def test_the_draw_is_spread_over_meetings(entries: dict[str, str], count: int) -> None:
    chosen = spread(entries, count, seed=1)
    assert len(chosen) == len(set(chosen)) == min(count, len(entries))
    drawn = [entries[i] for i in chosen]
    for meeting in set(entries.values()):
        left = sum(m == meeting for m in entries.values()) - drawn.count(meeting)
        # Nobody gives a second more while another, who has one left, gives fewer.
        assert left == 0 or drawn.count(meeting) >= max(map(drawn.count, set(drawn)), default=0) - 1


ITEMS = [
    Item(
        f"i{n}",
        "Academic",
        "Q?",
        ["A: </script> hi"],
        "one",
        "two",
        {"example": f"e{n}", "client": "Academic", "meeting": f"m{n}", "texts": "t", "A": a, "B": b},
    )
    for n, (a, b) in enumerate([(OURS, "AdaFedAvg"), ("AdaFedKD", OURS)])
]


@pytest.fixture
def sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two pairs, ours on either side, exported in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    write_sheet(ITEMS, 1, 1, tmp_path / "sheets")
    (key,) = (tmp_path / "data" / "ratings" / "keys").iterdir()
    return key.stem


def test_the_page_and_the_table_are_blind(sheet: str, tmp_path: Path) -> None:
    for path in (tmp_path / "sheets").iterdir():
        text = path.read_text()
        assert not [name for name in (OURS, "AdaFedAvg", "AdaFedKD", "example") if name in text], path
    page = (tmp_path / "sheets" / "rater-1.html").read_text()
    assert page.count("</script>") == 1, "what was said cannot end the script"
    assert "http" not in page


def answers(sheet: str, tmp_path: Path, given: dict[str, dict[str, str]]) -> Path:
    path = tmp_path / "back.json"
    path.write_text(json.dumps({"sheet": sheet, "rater": "EB", "answers": given}))
    return path


def test_what_comes_back_is_joined_by_the_key(sheet: str, tmp_path: Path) -> None:
    given = {"i0": {CRITERIA[0]: "A", CRITERIA[1]: "tie"}, "i1": {CRITERIA[0]: "A"}}
    assert bring_in([answers(sheet, tmp_path, given)]) == 3
    with (tmp_path / "data" / "ratings" / "ratings.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(r["against"], r["outcome"]) for r in rows] == [
        ("AdaFedAvg", "win"),
        ("AdaFedAvg", "tie"),
        ("AdaFedKD", "loss"),
    ]


def test_a_sheet_that_comes_again_replaces_itself(sheet: str, tmp_path: Path) -> None:
    bring_in([answers(sheet, tmp_path, {"i0": {CRITERIA[0]: "A"}})])
    assert bring_in([answers(sheet, tmp_path, {"i0": {CRITERIA[0]: "B"}})]) == 1


def test_a_sheet_is_one_raters_under_whatever_name(
    sheet: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counted as two, one person's word would narrow the intervals and raise κ."""
    path = answers(sheet, tmp_path, {"i0": {CRITERIA[0]: "A"}})
    bring_in([path])
    path.write_text(path.read_text().replace('"EB"', '"Eva B."'))
    assert bring_in([path]) == 1
    assert "took the place of what EB gave on the same sheet" in capsys.readouterr().err


def test_two_files_of_one_sheet_are_refused(sheet: str, tmp_path: Path) -> None:
    """Two raters who were given one page: neither's work may go unnoticed."""
    first = answers(sheet, tmp_path, {"i0": {CRITERIA[0]: "A"}}).rename(tmp_path / "ann.json")
    second = answers(sheet, tmp_path, {"i0": {CRITERIA[0]: "B"}})
    with pytest.raises(QuorumError, match=r"back\.json: is the same sheet as .*ann\.json"):
        bring_in([first, second])
    assert not ratings_table().exists()


def test_a_refused_import_changes_and_says_nothing(
    sheet: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = answers(sheet, tmp_path, {"i0": {CRITERIA[0]: "A"}})
    bring_in([path])
    before = ratings_table().read_bytes()
    capsys.readouterr()
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(QuorumError, match="not ratings"):
        bring_in([path, tmp_path / "bad.json"])
    assert (ratings_table().read_bytes(), capsys.readouterr().err) == (before, "")


def test_one_rater_on_two_sheets_is_refused(sheet: str, tmp_path: Path) -> None:
    """All sheets have the same pairs, each in an order of its own."""
    bring_in([answers(sheet, tmp_path, {"i0": {CRITERIA[0]: "A"}})])
    write_sheet(ITEMS, 2, 1, tmp_path / "sheets")
    (second,) = (path.stem for path in (tmp_path / "data" / "ratings" / "keys").iterdir() if path.stem != sheet)
    path = answers(second, tmp_path, {"i0": {CRITERIA[0]: "A"}})
    with pytest.raises(QuorumError, match="EB has rated item i0 on another sheet"):
        bring_in([path])
    path.write_text(path.read_text().replace('"EB"', '"Ann"'))
    assert bring_in([path]) == 2


def test_a_filled_table_comes_back_too(sheet: str, tmp_path: Path) -> None:
    path = tmp_path / "sheets" / "rater-1.csv"
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    rows[0][CRITERIA[2]] = "B"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert bring_in([path]) == 1


def test_a_table_from_a_spreadsheet_comes_back_too(sheet: str, tmp_path: Path) -> None:
    """Semicolons, a byte order mark, a name in capitals, and a transcript longer than csv takes by itself."""
    head, cells = ["sheet", "item", "transcript", *CRITERIA], [sheet, " i0", "x" * 140_000, "A", "", "tie"]
    path = tmp_path / "ANN.CSV"
    path.write_text("\n".join(";".join(row) for row in (head, cells)), encoding="utf-8-sig")
    assert bring_in([path]) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"i9": {CRITERIA[0]: "A"}}, "item 'i9' is not on sheet"),
        ({"i0": {"beauty": "A"}}, "'beauty' = 'A'"),
        ({"i0": {CRITERIA[0]: "C"}}, "choices are A, B, tie"),
        ({}, "holds no rating"),
    ],
)
def test_a_wrong_rating_is_one_line(sheet: str, tmp_path: Path, given: dict[str, dict[str, str]], message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        bring_in([answers(sheet, tmp_path, given)])


def test_ratings_without_a_name_are_refused(sheet: str, tmp_path: Path) -> None:
    """Two files without one could be one rater's, sent twice."""
    path = answers(sheet, tmp_path, {"i0": {CRITERIA[0]: "A"}})
    path.write_text(path.read_text().replace('"EB"', '" "'))
    with pytest.raises(QuorumError, match="names no rater"):
        bring_in([path])


def test_a_sheet_without_its_key_is_one_line(sheet: str, tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match="has no key"):
        bring_in([answers("../keys", tmp_path, {"i0": {CRITERIA[0]: "A"}})])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.json", "[]", r"not ratings as the page exports them \(Input should be an object"),
        ("x.csv", "", "has no column 'sheet'"),
        ("x.csv", f"{','.join(CRITERIA)},sheet,item\nA\n", "sheet '' has no key"),
        ("x.json", '{"sheet": "a", "answers": {}}', "rater: is missing"),
        ("x.csv", "sheet,item\na,i0\n", f"has no column '{CRITERIA[0]}'"),
        ("x.csv", f"sheet,item,{','.join(CRITERIA)}\na,i0\n", "holds no rating"),
    ],
)
def test_what_is_no_sheet_is_one_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(QuorumError, match=message):
        bring_in([tmp_path / name])


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `export` reads of a finished main table: one client, 24 test examples of 6 meetings, four methods."""
    monkeypatch.chdir(tmp_path)
    methods = ("AdaFedSelectKD", "AdaCentralized", "AdaFedAvg", "AdaFedKD")
    row = {"seed": 1, "setting": "domains", "orders": "", "training": None, "patience": 3, "evaluate": "local"}
    plan = {
        "code": {},
        "task": "pipeline.tasks.summarize",
        "scale": "laptop",
        "backbone": "tiny-llama",
        "precision": "fp32",
        "span_end": "inclusive",
        "source_tokens": 448,
        "target_tokens": 160,
        "train_fraction": 1.0,
        "validation_examples": None,
        "use_stemmer": False,
        "sign_flips": 200,
        "runs": [
            row | {"id": f"main/{method}-1", "name": method, "method": method, "part": method} for method in methods
        ],
    }
    write_json(order("main"), plan)
    encode = {
        "task": "",
        "corpora": ["qmsum"],
        "encoding": "",
        "device": "cpu",
        "precision": "fp32",
        "threads": 1,
        "adapted_layers": 2,
    }
    empty = {"code": {}, "manifests": {}, "limits": {}, "uncached": [], "left_out": []}
    write_json(order("encode", "main"), encode | empty)
    tests = [(f"e{n}", f"m{n % 6}") for n in range(24)]
    turns = (Turn("Ann", "We agree."),)
    write_jsonl(
        examples("qmsum"),
        (Example(i, "qmsum", "Academic", "test", m, "Q?", turns, "They agree.").to_json() for i, m in tests),
    )
    held = [{"id": i, "key": i, "tokens": 1, "source_tokens": 1, "meeting": m} for i, m in tests]
    for method in methods:
        write_jsonl(predictions(f"main/{method}-1"), ({"id": i, "prediction": f"{method} on {i}"} for i, _ in tests))
    clients = {"Academic": {"train": [], "val": [], "test": held}}
    write_json(encoded_index(f"main/{OURS}-1"), {"backbone": "", "clients": clients})
    return tmp_path


def test_each_rater_gets_twenty_examples_against_each_of_three_in_an_order_of_their_own(finished: Path) -> None:
    export(2, 1, finished / "sheets")
    first, second = (list(csv.DictReader((finished / "sheets" / f"rater-{n}.csv").open(newline=""))) for n in (1, 2))
    assert len(first) == 20 * 3
    assert {row["item"] for row in first} == {row["item"] for row in second}
    assert [row["item"] for row in first] != [row["item"] for row in second]
    assert all(row["transcript"] == "Ann: We agree." for row in first)


def test_the_key_knows_whose_summary_is_on_which_side(finished: Path) -> None:
    export(1, 1, finished / "sheets")
    (path,) = (finished / "data" / "ratings" / "keys").iterdir()
    key = json.loads(path.read_text())
    rows = list(csv.DictReader((finished / "sheets" / "rater-1.csv").open(newline="")))
    for row in rows:
        of = key[row["item"]]
        assert (row["A"], row["B"]) == tuple(f"{of[side]} on {of['example']}" for side in "AB")
    sides = [key[row["item"]]["A"] == OURS for row in rows]
    assert 15 < sum(sides) < 45, "ours is as often on one side as on the other"
    drawn = [key[row["item"]]["meeting"] for row in rows]
    assert {drawn.count(meeting) for meeting in drawn} <= {9, 12}, "three or four examples of each of six meetings"


def test_a_table_without_one_of_the_methods_is_one_line(finished: Path) -> None:
    path = order("main")
    plan = json.loads(path.read_text())
    write_json(path, plan | {"runs": plan["runs"][:2]})
    with pytest.raises(QuorumError, match="no run of AdaFedAvg"):
        export(1, 1, finished / "sheets")


def test_ratings_of_former_summaries_are_left_out(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """AdaFedKD's summaries change after they were rated: the ratings against it no longer count."""
    rows = read_order(order("main"), MainOrder).runs
    assert of_these_summaries(rows) == []
    export(1, 1, finished / "sheets")
    (path,) = (finished / "data" / "ratings" / "keys").iterdir()
    keys = json.loads(path.read_text())
    items = {key["A"] if key["B"] == OURS else key["B"]: item for item, key in keys.items()}
    bring_in([answers(path.stem, finished, {item: {CRITERIA[0]: "A"} for item in items.values()})])
    assert {row["against"] for row in of_these_summaries(rows)} == set(items)
    write_jsonl(predictions("main/AdaFedKD-1"), ({"id": f"e{n}", "prediction": "other"} for n in range(24)))
    assert {row["against"] for row in of_these_summaries(rows)} == set(items) - {"AdaFedKD"}
    assert "1 of 3 are of summaries that have changed" in capsys.readouterr().err
