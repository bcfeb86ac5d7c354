"""Corpora: cleaning, spans, sources, Table II, and from files as published to examples."""

import csv
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any, get_args

import pytest
from conftest import MIRROR, needs_mirror

from pipeline.clients.manifest import by_split, check
from pipeline.corpora import published_files, sources
from pipeline.corpora.catalog import SOURCES, Options
from pipeline.corpora.conversation import Conversation, Notes, Turn
from pipeline.corpora.dialogues import elitr, hmnet
from pipeline.corpora.example import SPLITS
from pipeline.corpora.organisation import split_folder
from pipeline.corpora.published_files import Listed
from pipeline.corpora.qmsum import DOMAINS, SpanEnd, examples_of, parse_meeting, read_domains, span_turns
from pipeline.corpora.readers import read_source
from pipeline.corpora.statistics import COLUMNS, PAPER, compared, equal_texts, reference, with_lost_letters
from pipeline.corpora.text import clean, joined
from pipeline.errors import QuorumError
from pipeline.workspace.files import sha256_file, write_bytes, write_json, write_jsonl, write_text
from pipeline.workspace.layout import source_record

TURNS = tuple(Turn("A", str(i)) for i in range(10))
NAMES = ("data/Academic/train/a.json", "data/Academic/test/b.json")
HMNET = "hmnet/ExampleRawData/meeting_summarization"
CLEANED = [
    ("{vocalsound} Okay {disfmarker} so {gap}", "Okay so"),
    ("the L_C_D_ on a T_V_", "the LCD on a TV"),
    ("two T_V_s", "two TVs"),
    ("R_ and D_", "R and D"),
    ("a  b\n c", "a b c"),
    ("snake_case stays", "snake_case stays"),
    ("{ pause } yes", "yes"),
]
ALTERED = [
    ("samsum", "samsum.zip", None, "samsum.zip.*; run `dvc repro ingest@samsum`"),
    ("samsum", "samsum.zip", b"PK", "File is not a zip file"),
    ("ami", "train/a.jsonl.gz", b"no gzip", "Not a gzipped file"),
    ("ami", "train/a.jsonl.gz", gzip.compress(b'{"id": 1}', mtime=0), "KeyError.'meeting'"),
    ("ami", "other/a.jsonl.gz", b"", "holds no train example"),
    ("elitr", "train/may/transcript.txt", b"\xff", "invalid start byte.*hdl.handle.net"),
    ("meetingbank", "train.json", b"{}", "KeyError.'uid'.*huggingface.co"),
    ("meetingbank", "train.json", b"{", r"train\.json: line 1: malformed JSON"),
]
PUBLISHED = [
    ("samsum", "samsum", [14731, 818, 819], 80, 20.3, ""),
    ("ami", f"{HMNET}/AMI_proprec", [97, 20, 20], 4000, 277, "Product"),
    ("icsi", f"{HMNET}/ICSI_proprec", [43, 10, 6], 9000, 494, "Academic"),
]


@pytest.mark.parametrize(("raw", "cleaned"), CLEANED)
def test_markers_go_and_letters_join(raw: str, cleaned: str) -> None:
    assert clean(raw) == cleaned


def test_spans_are_inclusive_unless_the_paper_reads_them() -> None:
    assert [t.text for t in span_turns(TURNS, ((1, 2), (5, 5)), "inclusive")] == ["1", "2", "5"]
    assert [t.text for t in span_turns(TURNS, ((1, 2), (5, 5)), "exclusive")] == ["1"]


def write_meeting(path: Path, **changes: Any) -> Path:
    meeting: dict[str, Any] = {
        "meeting_transcripts": [{"speaker": "A", "content": "hello"}, {"speaker": "B", "content": "bye"}],
        "specific_query_list": [{"query": "What?", "answer": "Greetings.", "relevant_text_span": [["0", "1"]]}],
    }
    write_json(path, meeting | changes)
    return path


def test_what_is_mended_is_counted(tmp_path: Path) -> None:
    queries = [
        {"query": "q", "answer": "kept", "relevant_text_span": [["1", "9"]]},
        {"query": "q", "answer": " ", "relevant_text_span": [["0", "1"]]},
        {"query": "q", "answer": "no turns", "relevant_text_span": []},
    ]
    meeting = parse_meeting(write_meeting(tmp_path / "m.json", specific_query_list=queries))
    notes = Notes()
    examples = examples_of(meeting, "d", "train", "inclusive", notes)
    assert [len(e.turns) for e in examples] == [1, 0]
    assert (notes.spans_past_end, notes.dropped_empty_target, notes.kept_without_turns) == (1, ["d/d/m/1"], ["d/d/m/2"])


def test_meetings_that_are_too_few_to_split_are_one_line(tmp_path: Path) -> None:
    write_meeting(tmp_path / "train" / "m1.json")
    with pytest.raises(QuorumError, match="needs at least three"):
        split_folder(tmp_path / "train", tmp_path / "a")
    with pytest.raises(QuorumError, match="val: holds no meeting"):
        read_domains({"d": tmp_path}, "inclusive")


def test_own_meetings_of_one_name_are_two_meetings(tmp_path: Path) -> None:
    """Else one of them in training and the other in test would look like a leak."""
    meeting = parse_meeting(write_meeting(tmp_path / "monday.json"))
    clients = ("Clinic", "Hospital", "Product")
    of = [examples_of(meeting, client, "train", "inclusive", Notes())[0].meeting for client in clients]
    assert of == ["Clinic/monday", "Hospital/monday", "monday"]


@pytest.fixture
def small_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror of two files, and their checksums."""
    for name in NAMES:
        write_json(tmp_path / "qmsum" / name, name)
    lines = [f"{sha256_file(tmp_path / 'qmsum' / name)}  {name}\n" for name in NAMES]
    (tmp_path / "qmsum.sha256").write_text("".join(lines))
    monkeypatch.setattr(published_files, "CHECKSUMS", tmp_path)
    monkeypatch.setenv("QUORUM_MIRROR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "mirror", "content", "message"),
    [
        ("mirror", ".", b"x", r"qmsum/data/Academic/test/b\.json.*truncated or altered"),
        ("mirror", ".", None, r"qmsum/data/Academic/test/b\.json.*is missing from the mirror"),
        ("mirror", "", b"", "set QUORUM_MIRROR"),
        ("mirror", "gone", b"", "gone: is not a folder"),
        ("upstream", ".", b"", r"http://127.0.0.1:9/data/Academic/t.*json: could not be fetched"),
    ],
    ids=["damaged", "missing", "no mirror", "no folder", "out of reach"],
)
def test_a_source_that_cannot_be_used_is_one_line(
    small_mirror: Path, monkeypatch: pytest.MonkeyPatch, source: Any, mirror: str, content: bytes | None, message: str
) -> None:
    monkeypatch.setitem(SOURCES, "qmsum", Listed("qmsum", "qmsum", "c0", "http://127.0.0.1:9/"))
    monkeypatch.setenv("QUORUM_MIRROR", mirror and str(small_mirror / mirror))
    monkeypatch.setenv("DVC_ROOT", str(small_mirror))
    path = small_mirror / "qmsum" / NAMES[1]
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuorumError, match=message):
        sources.fetch("qmsum", source, small_mirror / "out")


def test_a_misspelt_mirror_is_an_error_although_another_source_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORUM_MIRROR", "no/such/folder")
    with pytest.raises(QuorumError, match="QUORUM_MIRROR: no/such/folder: is not a folder"):
        sources.choose("qmsum", "auto")


def test_upstream_serves_the_mirrors_bytes_and_resumes(small_mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`file://` instead of the network; a file that was downloaded before is not downloaded again."""
    upstream = (small_mirror / "qmsum").as_uri() + "/"
    monkeypatch.setitem(SOURCES, "qmsum", Listed("qmsum", "qmsum", "c0", upstream))
    monkeypatch.setenv("DVC_ROOT", str(small_mirror / "home"))
    sources.fetch("qmsum", "mirror", small_mirror / "copied")
    sources.fetch("qmsum", "upstream", small_mirror / "out")
    (small_mirror / "qmsum" / NAMES[1]).unlink()
    sources.fetch("qmsum", "upstream", small_mirror / "again")
    for into in ("copied", "out", "again"):
        files = (small_mirror / into).rglob("*.json")
        assert {path.read_text() for path in files} == {f'"{name}"\n' for name in NAMES}


def test_the_best_source_is_taken_a_better_one_seen(short: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The files of a mirror are those of a pinned commit; who wants the sample has it."""
    within = {"sample"}
    monkeypatch.setattr(sources, "reachable", lambda corpus, source: source in within)
    assert sources.choose("qmsum", "auto") == "sample"
    assert "SAMPLE" in capsys.readouterr().err
    assert not sources.is_outdated("qmsum", "auto"), "nothing was used yet"
    write_json(source_record("qmsum"), {"source": "sample"})
    assert not sources.is_outdated("qmsum", "auto")
    within.add("mirror")
    assert [sources.choose("qmsum", wanted) for wanted in ("auto", "upstream")] == ["mirror", "upstream"]
    assert [sources.is_outdated("qmsum", wanted) for wanted in ("auto", "sample")] == [True, False]
    write_json(source_record("qmsum"), {"source": "mirror"})
    assert not sources.is_outdated("qmsum", "auto")


def test_changed_files_without_a_pinned_commit_are_seen(monkeypatch: pytest.MonkeyPatch, short: Path) -> None:
    monkeypatch.setenv("QUORUM_MIRROR", str(short / "mirror"))
    minutes = short / "mirror" / "elitr" / "test" / "minutes.txt"
    write_bytes(minutes, b"as it was fetched")
    sources.fetch("elitr", "mirror", source_record("elitr").parent)
    write_json(source_record("elitr"), {"source": "mirror"})
    assert not sources.is_outdated("elitr", "auto")
    minutes.write_text("as it is corrected")
    assert sources.is_outdated("elitr", "auto")
    assert sources.is_outdated("elitr", "mirror")


@needs_mirror
def test_table_two_comes_out_of_the_real_files() -> None:
    """Turns and speakers exactly, all nine of each, under the exclusive reading. Bmr023 and Bed010 share an answer."""
    folders = {domain: MIRROR / "qmsum/data" / domain for domain in DOMAINS}
    inclusive, exclusive = (read_domains(folders, end)[0] for end in get_args(SpanEnd))
    assert equal_texts(inclusive, reference) == {"val_in_train": 0, "test_in_train": 0, "test_in_val": 1}
    rows = compared(inclusive, exclusive)
    assert len(rows) == 9
    for row in rows:
        paper = dict(zip(COLUMNS, PAPER[str(row["domain"]), str(row["split"])], strict=True))
        assert row["inclusive_pairs"] == row["exclusive_pairs"] == paper["pairs"]
        assert row["exclusive_turns"] == pytest.approx(paper["turns"], abs=0.0051)
        assert row["exclusive_speakers"] == pytest.approx(paper["speakers"], abs=0.0051)
        assert row["exclusive_summary_words"] == pytest.approx(paper["summary_words"], abs=0.13)
    assert sum(int(row["exclusive_without_turns"]) for row in rows) == 36
    assert sum(int(row["inclusive_without_turns"]) for row in rows) == 0


def test_letters_that_latin_rouge_loses_are_counted_by_corpus() -> None:
    """Two of five in one of Klinik's references; Council's one of fifty is no more than 2%."""
    references = [("Klinik", "Größe"), ("Klinik", "x" * 45), ("Council", "é" + "x" * 49)]
    examples = [Conversation("i", corpus, "d", "test", "m", "q?", (), text) for corpus, text in references]
    (line,) = with_lost_letters("qmsum", examples)
    assert line.startswith("Klinik: ROUGE by latin words loses over 2% of the letters in 1 of 2 references")


def test_a_dialogue_becomes_turns(tmp_path: Path) -> None:
    """An empty dialogue is an example and counted; one without a summary is left out and counted, in each split."""
    rows = [("1", "Ann: Hi\nBen: Hello\nhow are you?", "They greet."), ("2", "", "Nothing."), ("3", "Ann: Hi", " ")]
    with zipfile.ZipFile(tmp_path / "samsum.zip", "w") as archive:
        for name in ("train", "validation", "test"):
            stream = io.StringIO(newline="")
            csv.writer(stream).writerows([("id", "dialogue", "summary"), *((f"{name}-{i}", *row) for i, *row in rows)])
            archive.writestr(f"samsum/{name}.csv", stream.getvalue())
            archive.writestr(f"__MACOSX/samsum/._{name}.csv", b"\x00\xff")
    read = read_source("samsum", tmp_path, Options(query="Summarize."))
    first = read.examples[0]
    assert (read.notes["meetings"], len(read.examples)) == (6, 6)
    assert first.turns == (Turn("Ann", "Hi"), Turn("Ben", "Hello how are you?"))
    assert (first.domain, first.split, first.query, first.target) == ("SAMSum", "train", "Summarize.", "They greet.")
    assert read.notes["kept_without_turns"] == [f"samsum/{split}-2" for split in ("train", "validation", "test")]
    assert read.notes["dropped_empty_target"] == [f"samsum/{split}-3" for split in ("train", "validation", "test")]


def test_tokens_become_running_text() -> None:
    assert joined(["it", "'s", "fine", ",", "is", "n't", "it", "?"]) == "it's fine, isn't it?"
    assert joined(["{vocalsound}", "we", "'ll", "see", "(", "maybe", ")", "."]) == "we'll see (maybe)."


def turn(speaker: str, role: str, words: str) -> dict[str, Any]:
    return {"speaker": speaker, "role": role, "utt": {"word": words.split()}}


def test_roles_are_speakers(tmp_path: Path) -> None:
    """AMI's four roles are one person each; ICSI's titles are shared, so the letter stays."""
    turns = [turn("B", "PM", "Let 's start ."), turn("C", "Grad", "Yes ."), turn("D", "UI", "{laugh}")]
    row = {"id": "ES2004a", "meeting": turns, "summary": ["The PM opened .", "All agreed ."]}
    for split in ("train", "dev", "test"):
        write_bytes(tmp_path / split / "split_0.jsonl.gz", gzip.compress(json.dumps(row).encode()))
    dialogues = list(hmnet(tmp_path))
    assert [one.split for one in dialogues] == list(SPLITS)
    assert dialogues[0].turns == (Turn("Project Manager", "Let's start."), Turn("Grad C", "Yes."))
    assert (dialogues[0].meeting, dialogues[0].summary) == ("ES2004a", "The PM opened. All agreed.")


def test_elitr_utterances_and_minutes(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        meeting = tmp_path / split / f"meeting_en_{split}_001"
        write_text(meeting / "transcript_MAN2_annot11.txt", "(PERSON1) Hi <laugh> all.\nSo let's go.\n(PERSON2) Yes\n")
        write_text(meeting / "minutes_GENER_annot02.txt", "- Other words\n")
        write_text(meeting / "minutes_GENER_annot01.txt", "* PERSON1 greets\n  - They begin.\n")
        write_text(meeting / "minutes_ORIG.txt", "agenda")
    first, *others = elitr(tmp_path)
    assert len(others) == 2
    assert first.turns == (Turn("PERSON1", "Hi all. So let's go."), Turn("PERSON2", "Yes"))
    assert first.summary == "PERSON1 greets. They begin."


def test_a_meeting_whose_segments_lie_in_two_splits_is_tested_alone(tmp_path: Path) -> None:
    """City and date are the meeting. Of Monday's three segments the test's stays; Tuesday's two train."""
    for name, ends in (("train", "mon_1 tue_1 tue_2"), ("validation", "mon_2 wed_1"), ("test", "mon_3")):
        words = {"transcript": "Please read the title.", "summary": "A bill."}
        write_jsonl(tmp_path / f"{name}.json", [{"id": 1, "uid": f"C_{end}", **words} for end in ends.split()])
    read = read_source("meetingbank", tmp_path, Options(query="q"))
    examples = read.examples
    assert [e.id for e in examples] == [f"meetingbank/C_{end}" for end in ("tue_1", "tue_2", "wed_1", "mon_3")]
    assert (read.notes["meetings"], [e.meeting for e in examples]) == (3, ["C_tue", "C_tue", "C_wed", "C_mon"])
    assert examples[0].turns == (Turn("Speaker", "Please read the title."),)
    assert read.notes["dropped_tested_meeting"] == ["meetingbank/C_mon_1", "meetingbank/C_mon_2"]
    check({"MeetingBank": by_split(examples)}, {example.id: example for example in examples}, "manifest")


@pytest.mark.parametrize(("corpus", "where"), [("elitr", "hdl.handle.net"), ("meetingbank", "huggingface.co")])
def test_a_publishers_page_is_named(corpus: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORUM_MIRROR", str(tmp_path))
    with pytest.raises(QuorumError, match=where):
        sources.choose(corpus, "auto")


@pytest.mark.parametrize(("corpus", "file", "content", "message"), ALTERED)
def test_an_altered_file_is_one_line(corpus: str, file: str, content: Any, message: str, tmp_path: Path) -> None:
    if content is not None:
        write_bytes(tmp_path / file, content)
    with pytest.raises(QuorumError, match=message) as caught:
        read_source(corpus, tmp_path, Options(query="q"))
    assert "\n" not in str(caught.value)


@needs_mirror
@pytest.mark.parametrize(("corpus", "folder", "pairs", "words", "summary_words", "domain"), PUBLISHED)
def test_the_real_corpora_have_their_published_sizes(
    corpus: str, folder: str, pairs: list[int], words: int, summary_words: float, domain: str
) -> None:
    """AMI's and ICSI's meetings are recordings of QMSum: the leak that the check of a manifest finds."""
    read = read_source(corpus, MIRROR / folder, Options(query="q"))
    examples, rows = read.examples, read.statistics
    assert ([row["pairs"] for row in rows], read.notes["dropped_empty_target"]) == (pairs, [])
    assert float(rows[0]["words"]) > words
    assert float(rows[0]["summary_words"]) == pytest.approx(summary_words, rel=0.02)
    assert len({example.id for example in examples}) == len(examples)
    shared = {"val_in_train": 47, "test_in_train": 42, "test_in_val": 4} if corpus == "samsum" else {}
    assert {name: count for name, count in equal_texts(examples).items() if count} == shared
    qmsum = {path.stem for path in (MIRROR / "qmsum/data" / domain).rglob("*.json")}
    assert (len(qmsum & {example.meeting for example in examples}) > 40) == bool(domain)
