"""Published and own labelled texts and documents -> records, on a few made-up files."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pipeline.corpora import own_labelled
from pipeline.corpora import published_labelled as published
from pipeline.corpora.conversation import Conversation, Turn
from pipeline.corpora.documents import Document, greedy_labels
from pipeline.corpora.example import examples_of, write_examples
from pipeline.corpora.labelled import Labelled, Question, Tagged, Titled
from pipeline.corpora.published_documents import bbc, of_meetings, scitldr, sumpubmed
from pipeline.errors import QuorumError
from pipeline.tasks.classify import Classify
from pipeline.tasks.tag import Tag
from pipeline.workspace import layout
from pipeline.workspace.files import write_bytes, write_jsonl, write_text

POST = "From: a@b.org\nSubject: Re: RE: Brakes squeak\nLines: 2\n\nMine do,\ntoo.\n"
RECORDS = [
    Labelled("i", "train", "o", "g", "words", "label"),
    Tagged("i", "val", "o", "g", ("a", "b"), ("O", "B-X")),
    Question("i", "test", "o", "g", "why?", "because", (("because", 0),)),
    Titled("i", "train", "o", "g", "long", "short", ("other",)),
    Conversation("i", "q", "d", "val", "m", "q?", (Turn("A", "line\u2028separator"),), "t"),
]
WRONG_ROWS = [
    (Labelled, "a.csv", "text,klass\nx,y\n", "no column 'label'; it has 'text', 'klass', and needs text, label"),
    (Labelled, "a.csv", "text,label\n", "holds no row"),
    (Labelled, "a.csv", "text,label,text\nx,y,z\n", "line 1: has two columns 'text'"),
    (Labelled, "a.csv", "text,label\nhello, dear,y\n", "line 2: 3 fields, and the header has 2; write"),
    (Labelled, "a.csv", "text,label\nhello\n", "line 2: 1 fields, and the header has 2"),
    (Labelled, "a.csv", "text,label,split\nx,y,train\nx,z,test\n", r"line 3 \(test\): no training .* label 'z'"),
    (Labelled, "a.csv", "text,label,split\nx,y,dev\n", "line 2: split 'dev': write train, val, test"),
    (Labelled, "a.csv", 'text,label,split\n"a\nb",y,train\n"a\nb",,train\n', "line 4: label is empty"),
    (Labelled, "a.csv", 'text,label\nx,y\n"x,y\nx,y\n', r'line 3: is no CSV \(unexpected end of data\); write "'),
    (Labelled, "a.jsonl", '{"text": "x", "label": "y"}\n[1]\n', "line 2: is no JSON object"),
    (Labelled, "a.jsonl", "[" * 100_000, "line 1: is no JSON object"),
    (Labelled, "a.jsonl", r'{"text": "\ud800", "label": "y"}', "line 1: has a NUL or half of a surrogate pair"),
    (Labelled, "a.jsonl", '{"text": "x", "label": "y"}\n{"split": "val"}', "line 1: split"),
    (Labelled, "gone.csv", None, "gone.csv: could not be read"),
    (Tagged, "a.csv", "words,tags,split\na b,O,train\n", "2 words and 1 tags"),
    (Tagged, "a.csv", "words,tags,split\na,LOC,train\n", "tag 1, 'LOC': is not BIO"),
    (Tagged, "a.csv", "words,tags,split\na b,O I-LOC,train\n", "tag 2, 'I-LOC': follows 'O'; begin each span with"),
    (Tagged, "a.csv", "words,tags,split\na b,B-PER I-LOC,train\n", "line 2: tag 2, 'I-LOC': follows 'B-PER'"),
    (Tagged, "a.csv", "words,tags,split\na,I-LOC,train\n", "line 2: tag 1, 'I-LOC': begins the sentence; begin"),
    (Tagged, "a.csv", "words,tags,split\nRome,B-LOC,train\nAnn,B-PER,test\n", "has the label 'B-PER'"),
    (Question, "a.csv", "question,context,answer,answer_start,split\nq,abc,b,2,train\n", "'b' does not lie in its"),
    (Question, "a.csv", "question,context,answer,answer_start\nq,abc,b,x\n", "answer_start is no number"),
]
LENGTHS = [(3.0, 20, 3), (0.43, 10, 4), (0.43, 15, 6), (0.43, 1, 1)]
NO_DOCUMENTS = [
    ({"units": ()}, "x/1: has no sentence; write some, or leave it out"),
    ({"labels": (1,)}, "x/1: 1 labels of 2 units; give each unit 0 or 1"),
    ({"labels": (1, 2)}, "x/1: 2 labels of 2 units; give each unit 0 or 1"),
    ({"references": (" ",)}, "x/1: has an empty summary; write one, or leave it out"),
]
WRONG_FOLDERS = [
    ({"1": "A."}, {"1": "A."}, r"texts: holds 1 texts \(\*.txt\); lay at least three there"),
    (dict.fromkeys("123", "A."), dict.fromkeys("12", "A."), r"summaries/3.txt: is missing; write"),
    (dict.fromkeys("123", " "), dict.fromkeys("123", "A."), r"texts/1.txt: mine/1: has no sentence"),
    (dict.fromkeys("123", "A."), dict.fromkeys("123", "\n"), r"summaries/1.txt: has no word; write"),
]


def lay(path: Path, content: str) -> Path:
    write_text(path, content)
    return path


def test_a_post_is_its_subject_and_body_or_the_whole_file(tmp_path: Path) -> None:
    """Twenty of a group's 22 training posts are its development set."""
    for split, name in published.POSTS.items():
        for number in range(22 if split == "train" else 2):
            lay(tmp_path / "data" / name / "rec.autos" / str(number), POST)
    found = published.newsgroups(tmp_path, "all")
    (short, *_) = published.newsgroups(tmp_path, "subject")
    assert found[0].text.startswith("From: a@b.org Subject: Re: RE: Brakes squeak Lines: 2 Mine do, too.")
    assert short.text == "Re: RE: Brakes squeak Mine do, too."
    assert (short.group, short.label) == ("rec.autos/brakes squeak", "rec.autos")
    assert Counter(post.split for post in found) == {"train": 2, "val": 20, "test": 2}


def test_a_sentence_knows_its_domain_and_its_document(tmp_path: Path) -> None:
    """Types that only the training file's first version has become O."""
    rows = "1\tIn\tO\t-\t-\n2\tNew\tB-LOC\t-\t-\n3\tYork\tI-LOC\t-\t-\n4\tRed\tB-OTH\t-\t-\n5\tx\tB-O\t-\t-"
    for name in published.UNER.values():
        lay(tmp_path / name, f"# newdoc id = weblog-1\n# sent_id = weblog-1-01\n# text = x\n{rows}\n\n")
    sentence = published.uner(tmp_path)[0]
    assert sentence.tags == ("O", "B-LOC", "I-LOC", "O", "O")
    assert (sentence.owner, sentence.group, sentence.label) == ("weblog", "weblog-1", "LOC")


def test_wnut_sentences_are_separated_by_empty_lines(tmp_path: Path) -> None:
    """A label is the set of a sentence's types."""
    for name in published.WNUT.values():
        lay(tmp_path / name, "a\tB-b\nb\tB-a\nc\tI-a\n\t\nd\tO\n")
    found = published.wnut(tmp_path)[:2]
    assert [(text.words, text.label) for text in found] == [(("a", "b", "c"), "a_b"), (("d",), "NULL")]


def test_a_question_belongs_to_its_article_and_paragraph(tmp_path: Path) -> None:
    asked = {"id": "q1", "question": " Which? ", "answers": [{"text": "Paris", "answer_start": 3}]}
    paragraphs = [{"context": "In Paris.", "qas": [asked]}]
    for name in published.SQUAD.values():
        lay(tmp_path / name, json.dumps({"data": [{"title": "France", "paragraphs": paragraphs}]}))
    first = published.squad(tmp_path)[0]
    assert (first.owner, first.group) == ("France", "France/0")
    assert (first.question, first.answers) == ("Which?", (("Paris", 3),))


def test_an_email_that_recurs_in_the_test_set_does_not_train(tmp_path: Path) -> None:
    here = tmp_path / "enron_subject_line"
    lay(here / "train" / "kean-s_in_1.subject", "See you  at ten.\n\n@subject\nLunch")
    lay(here / "train" / "kean-s_in_2.subject", "Other words.\n\n@subject\nWords")
    lay(here / "dev" / "kean-s_in_3.subject", "Dev.\n\n@subject\nD\n\n@ann0\nd one\n\n@ann1\nd two")
    lay(here / "test" / "lay-k_in_1.subject", "see you at TEN.\n\n@subject\nLunch then")
    found, left_out = published.aeslc(tmp_path)
    owners = {"train/kean-s_in_2": "kean-s", "val/kean-s_in_3": "kean-s", "test/lay-k_in_1": "lay-k"}
    assert [(email.id, email.owner) for email in found] == [(f"aeslc/{name}", own) for name, own in owners.items()]
    assert (found[1].title, found[1].others) == ("D", ("d one", "d two"))
    assert left_out == 1


@pytest.mark.parametrize("text", RECORDS, ids=lambda text: type(text).__name__)
def test_a_record_is_read_back_as_it_was_written_and_another_line_is_named(text: Any, short: Path) -> None:
    write_examples(layout.examples("x"), [text])
    assert examples_of(["x"], type(text)) == {"i": text}
    for wrong in ({"id": "x"}, asdict(text) | {"more": 1}):
        write_jsonl(layout.examples("x"), [asdict(text), wrong])
        with pytest.raises(QuorumError, match=f"line 2: no {type(text).__name__}"):
            examples_of(["x"], type(text))


def test_own_rows_without_splits_are_split_by_group(tmp_path: Path) -> None:
    """Of 20 groups of two rows, two validate and two test; no group is in two splits."""
    rows = "".join(f"text {i},{'ab'[i % 2]},g{i // 2}\n" for i in range(40))
    texts: list[Labelled] = own_labelled.read(lay(tmp_path / "my.csv", f"text,label,group\n{rows}"), Labelled)
    assert [sum(text.split == split for text in texts) for split in ("train", "val", "test")] == [32, 4, 4]
    assert len({(text.group, text.split) for text in texts}) == 20


def test_own_tags_come_as_lists_or_words(tmp_path: Path) -> None:
    line = json.dumps({"words": ["In", "Rome"], "tags": ["O", "B-LOC"], "split": "train"})
    (listed,) = own_labelled.read(lay(tmp_path / "a.jsonl", line), Tagged)
    rows = "words,tags,split\nIn Rome,O B-LOC,train\nNew York,B-LOC I-LOC,test\n"
    spaced, tested = own_labelled.read(lay(tmp_path / "b.csv", rows), Tagged, Tag().classes)
    assert (listed.words, listed.tags) == (spaced.words, spaced.tags) == (("In", "Rome"), ("O", "B-LOC"))
    assert tested.tags == ("B-LOC", "I-LOC"), "an inner tag needs no training example"


@pytest.mark.parametrize(("kind", "name", "content", "message"), WRONG_ROWS)
def test_a_wrong_row_is_named(kind: type[Any], name: str, content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / name if content is None else lay(tmp_path / name, content)
    with pytest.raises(QuorumError, match=message):
        own_labelled.read(path, kind, Classify().classes if kind is Labelled else Tag().classes)


def test_common_content_of_files_is_no_mistake(tmp_path: Path) -> None:
    """A byte order mark, separators that end no line, and a long text; a text is named by the line where it begins."""
    long = "word " * 40_000
    rows = f'\ufefftext,label,split\none\u2028two\u0085three,y,train\n"{long}\nend",y,train\nx,y,train\n'
    first, second, third = own_labelled.read(lay(tmp_path / "a.csv", rows), Labelled)
    assert (first.text, first.label, len(second.text.split())) == ("one two three", "y", 40_001)
    assert (first.id, second.id, third.id) == ("a/2", "a/3", "a/5")
    line = json.dumps({"text": "a\u2028b", "label": "y", "split": "train"}, ensure_ascii=False)
    assert own_labelled.read(lay(tmp_path / "a.jsonl", line + "\n"), Labelled)[0].text == "a b"


def document(units: tuple[str, ...] = ("One.", "Two."), labels: tuple[int, ...] = (), **more: object) -> Document:
    fields = {"length": 3.0, "references": ("A summary.",)} | more
    return Document("x/1", "train", "", "x/1", units, labels, **fields)  # type: ignore[arg-type]


def lay_pairs(folder: Path, texts: dict[str, str], summaries: dict[str, str]) -> Path:
    for kind, own in (("texts", texts), ("summaries", summaries)):
        for name, text in own.items():
            write_text(folder / kind / f"{name}.txt", text)
    return folder


def test_greedy_labels_stop_where_no_unit_raises_the_sum() -> None:
    """1.4167 with the second unit, 1.8571 with the third, 1.6591 with the first as well."""
    units = ["a b x", "c d e", "a b"]
    assert greedy_labels(units, "a b c d e", 3) == (0, 1, 1)
    assert greedy_labels(units, "a b c d e", 1) == (0, 1, 0)


def test_greedy_labels_are_of_words_of_any_script_and_of_all_lines() -> None:
    assert greedy_labels(["The dog barks.", "The cat sleeps."], "The dog barks.\nThe cat sleeps.", 3) == (1, 1)
    assert greedy_labels(["Собака лает.", "Кошка спит."], "Кошка спит.", 3) == (0, 1)


@pytest.mark.parametrize(("length", "units", "count"), LENGTHS, ids=["a number", "4.3", "6.45", "at least one"])
def test_a_prediction_has_a_number_of_units_or_a_share(length: float, units: int, count: int) -> None:
    assert document(length=length).count(units) == count


def test_a_new_text_has_no_label() -> None:
    assert document(references=()).labels_of(2) == (0, 0)


@pytest.mark.parametrize(("fields", "message"), NO_DOCUMENTS)
def test_what_is_no_document(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        document(**fields)  # type: ignore[arg-type]


def test_a_folder_has_texts_and_their_summaries_and_subfolders_are_owners(tmp_path: Path) -> None:
    names, text = [*(f"press/{number}" for number in range(8)), "9", "10"], "It rose. He left.\nSo.  It was."
    folder = lay_pairs(tmp_path / "mine", dict.fromkeys(names, text), dict.fromkeys(names, "He left."))
    found = own_labelled.read(folder, Document)
    assert {one.units for one in found} == {("It rose.", "He left.", "So.", "It was.")}
    assert {one.labels_of(4) for one in found} == {(0, 1, 0, 0)}
    assert {one.id: one.owner for one in found if one.owner != "press"} == {"mine/9": "", "mine/10": ""}
    assert sorted(one.split for one in found) == ["test"] + ["train"] * 8 + ["val"]


@pytest.mark.parametrize(("texts", "summaries", "message"), WRONG_FOLDERS)
def test_what_is_wrong_with_a_folder_is_one_line(texts: Any, summaries: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match=message):
        own_labelled.read(lay_pairs(tmp_path / "mine", texts, summaries), Document)


def test_an_article_is_its_body_and_its_extract_is_found_by_its_letters(tmp_path: Path) -> None:
    """The copy under another title is left out. Files are in Latin-1."""
    folder = tmp_path / "BBC News Summary"
    bodies = {number: f"Title {number}\n\nIt rose to {number}. He left.\n\nThe café shut." for number in range(600)}
    bodies[600] = bodies[0].replace("Title 0", "Another title")
    for number, text in bodies.items():
        for kind, own in (("News Articles", text), ("Summaries", f"The café shut.It rose to {number % 600}.")):
            write_bytes(folder / kind / "tech" / f"{number:03}.txt", own.encode("latin-1"))
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
    write_jsonl(folder / "train.jsonl", [paper("a", "A.", "B.", "C."), paper("b", "D.", "E.", "F.")])
    write_jsonl(folder / "dev.jsonl", [])
    write_jsonl(folder / "test.jsonl", [paper("c", "a.", "B.", "C.")])
    found, left_out = scitldr(tmp_path)
    assert ([one.id for one in found], left_out) == (["scitldr/train/b", "scitldr/test/c"], 1)
    assert (found[0].labels, found[0].references, found[0].count(7)) == ((1, 0, 0), ("We rise.", "Rise."), 1)


def test_an_articles_short_lines_are_no_units(tmp_path: Path) -> None:
    """Six words are enough; the split is by the hash of the number."""
    for number in range(401):
        write_text(tmp_path / f"line_text/text_{number}.txt", "one two three four five six\nSo.\n" * 3)
        write_text(tmp_path / f"shorter_abstract/abst_{number}.txt", "A.\n\nB.\n")
    found, left_out = sumpubmed(tmp_path)
    assert (Counter(one.split for one in found), left_out) == ({"train": 1, "val": 100, "test": 300}, 0)
    assert {(one.units, one.references) for one in found} == {(("one two three four five six",) * 3, ("A.\nB.",))}


def test_turns_of_a_query_are_units_but_for_short_ones() -> None:
    """A test query without a longer turn is left out; so is a training one of two turns."""

    def query(split: str, *turns: str) -> Conversation:
        spoken = tuple(Turn("Ann", turn) for turn in turns)
        return Conversation(f"q/{split}", "qmsum", "Product", split, "m", "Why?", spoken, "He left. It rose.")  # type: ignore[arg-type]

    long = "one two three four five six"
    queries = query("train", long, "Yes.", long, long), query("test", "Yes."), query("train", long, long)
    (one,), left_out = of_meetings(queries)
    assert (one.units, one.references, left_out) == ((long,) * 3, ("He left.\nIt rose.",), 2)
    assert (one.owner, one.group) == ("Product", "m")
