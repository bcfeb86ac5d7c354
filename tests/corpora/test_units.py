"""Documents in units: what a unit is, which of them are an extract, and folders of one's own."""

from collections import Counter
from pathlib import Path

import pytest

from pipeline.corpora import own_labelled
from pipeline.corpora.conversation import Conversation, Turn
from pipeline.corpora.documents import Document, greedy_labels
from pipeline.corpora.published_documents import bbc, of_meetings, scitldr, sumpubmed
from pipeline.errors import QuorumError
from pipeline.workspace.files import write_jsonl


def document(units: tuple[str, ...] = ("One.", "Two."), labels: tuple[int, ...] = (), **more: object) -> Document:
    fields = {"length": 3.0, "references": ("A summary.",)} | more
    return Document("x/1", "train", "", "x/1", units, labels, **fields)  # type: ignore[arg-type]


def lay(folder: Path, texts: dict[str, str], summaries: dict[str, str]) -> Path:
    for kind, own in (("texts", texts), ("summaries", summaries)):
        for name, text in own.items():
            path = folder / kind / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder


def test_greedy_labels_stop_where_no_unit_raises_the_sum() -> None:
    """1.4167 with the second unit, 1.8571 with the third, 1.6591 with the first as well."""
    units = ["a b x", "c d e", "a b"]
    assert greedy_labels(units, "a b c d e", 3) == (0, 1, 1)
    assert greedy_labels(units, "a b c d e", 1) == (0, 1, 0)


def test_a_line_of_the_reference_ends_a_word() -> None:
    assert greedy_labels(["The dog barks.", "The cat sleeps."], "The dog barks.\nThe cat sleeps.", 3) == (1, 1)


def test_greedy_labels_of_another_script() -> None:
    assert greedy_labels(["Собака лает.", "Кошка спит."], "Кошка спит.", 3) == (0, 1)


@pytest.mark.parametrize(
    ("length", "units", "count"),
    [(3.0, 20, 3), (0.43, 10, 4), (0.43, 15, 6), (0.43, 1, 1)],
    ids=["a number", "4.3", "6.45", "at least one"],
)
def test_a_prediction_has_a_number_of_units_or_a_share(length: float, units: int, count: int) -> None:
    assert document(length=length).count(units) == count


def test_a_new_text_has_no_label() -> None:
    assert document(references=()).labels_of(2) == (0, 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"units": ()}, "x/1: has no sentence; write some, or leave it out"),
        ({"labels": (1,)}, "x/1: 1 labels of 2 units; give each unit 0 or 1"),
        ({"labels": (1, 2)}, "x/1: 2 labels of 2 units; give each unit 0 or 1"),
        ({"references": (" ",)}, "x/1: has an empty summary; write one, or leave it out"),
    ],
)
def test_what_is_no_document(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        document(**fields)  # type: ignore[arg-type]


def test_a_folder_has_texts_and_their_summaries_and_subfolders_are_owners(tmp_path: Path) -> None:
    names = [f"press/{number}" for number in range(8)] + ["9", "10"]
    folder = lay(
        tmp_path / "mine", dict.fromkeys(names, "It rose. He left.\nSo.  It was."), dict.fromkeys(names, "He left.")
    )
    found = own_labelled.read(folder, Document)
    assert {one.units for one in found} == {("It rose.", "He left.", "So.", "It was.")}
    assert {one.labels_of(4) for one in found} == {(0, 1, 0, 0)}
    assert {one.id: one.owner for one in found if one.owner != "press"} == {"mine/9": "", "mine/10": ""}
    assert sorted(one.split for one in found) == ["test"] + ["train"] * 8 + ["val"]


@pytest.mark.parametrize(
    ("texts", "summaries", "message"),
    [
        ({"1": "A."}, {"1": "A."}, r"texts: holds 1 texts \(\*.txt\); lay at least three there"),
        (
            dict.fromkeys("123", "A."),
            dict.fromkeys("12", "A."),
            r"summaries/3.txt: is missing; write",
        ),
        (dict.fromkeys("123", " "), dict.fromkeys("123", "A."), r"texts/1.txt: mine/1: has no sentence"),
        (
            dict.fromkeys("123", "A."),
            dict.fromkeys("123", "\n"),
            r"summaries/1.txt: has no word; write",
        ),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_line(
    tmp_path: Path, texts: dict[str, str], summaries: dict[str, str], message: str
) -> None:
    with pytest.raises(QuorumError, match=message):
        own_labelled.read(lay(tmp_path / "mine", texts, summaries), Document)


def test_an_article_is_its_body_and_its_extract_is_found_by_its_letters(tmp_path: Path) -> None:
    """The copy under another title is left out. Files are in Latin-1."""
    folder = tmp_path / "BBC News Summary"
    bodies = {number: f"Title {number}\n\nIt rose to {number}. He left.\n\nThe café shut." for number in range(600)}
    bodies[600] = bodies[0].replace("Title 0", "Another title")
    for number, text in bodies.items():
        for kind, own in (("News Articles", text), ("Summaries", f"The café shut.It rose to {number % 600}.")):
            path = folder / kind / "tech" / f"{number:03}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(own.encode("latin-1"))
    found, left_out = bbc(tmp_path)
    assert Counter(one.split for one in found) == {"train": 100, "val": 100, "test": 400}
    first = next(one for one in found if one.id == "bbc/tech/000.txt")
    assert first.units == ("It rose to 0.", "He left.", "The café shut.")
    assert (first.labels, first.references) == ((1, 0, 1), ("It rose to 0.\nThe café shut.",))
    assert (first.owner, first.count(3), left_out) == ("tech", 1, 1)


def test_an_abstract_that_recurs_in_a_later_split_is_left_out_of_the_earlier(tmp_path: Path) -> None:
    def paper(name: str, *units: str) -> dict[str, object]:
        return {"paper_id": name, "source": units, "source_labels": [1, 0, 0], "target": ["We  rise.", "Rise."]}

    folder = tmp_path / "SciTLDR-Data" / "SciTLDR-A"
    rows = {
        "train": [paper("a", "A.", "B.", "C."), paper("b", "D.", "E.", "F.")],
        "dev": [],
        "test": [paper("c", "a.", "B.", "C.")],
    }
    for name, own in rows.items():
        write_jsonl(folder / f"{name}.jsonl", own)
    found, left_out = scitldr(tmp_path)
    assert ([one.id for one in found], left_out) == (["scitldr/train/b", "scitldr/test/c"], 1)
    assert (found[0].labels, found[0].references, found[0].count(7)) == ((1, 0, 0), ("We rise.", "Rise."), 1)


def test_an_articles_short_lines_are_no_units(tmp_path: Path) -> None:
    """Six words are enough; the split is by the hash of the number."""
    for number in range(401):
        for kind, text in (
            ("line_text/text", "one two three four five six\nSo.\n" * 3),
            ("shorter_abstract/abst", "A.\n\nB.\n"),
        ):
            path = tmp_path / f"{kind}_{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    found, left_out = sumpubmed(tmp_path)
    assert (Counter(one.split for one in found), left_out) == ({"train": 1, "val": 100, "test": 300}, 0)
    assert {(one.units, one.references) for one in found} == {(("one two three four five six",) * 3, ("A.\nB.",))}


def test_turns_of_a_query_are_units_but_for_short_ones() -> None:
    """A test query without a longer turn is left out; so is a training one of two turns."""

    def query(split: str, *turns: str) -> Conversation:
        spoken = tuple(Turn("Ann", turn) for turn in turns)
        return Conversation(f"q/{split}", "qmsum", "Product", split, "m", "Why?", spoken, "He left. It rose.")  # type: ignore[arg-type]

    long = "one two three four five six"
    found, left_out = of_meetings(
        [query("train", long, "Yes.", long, long), query("test", "Yes."), query("train", long, long)]
    )
    (one,) = found
    assert (one.units, one.references, one.owner, one.group, left_out) == (
        (long,) * 3,
        ("He left.\nIt rose.",),
        "Product",
        "m",
        2,
    )
