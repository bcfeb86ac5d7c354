"""SAMSum, AMI, ICSI, ELITR and MeetingBank: from files as published to examples."""

import csv
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import MIRROR, needs_mirror

from pipeline.clients.manifest import by_split, check
from pipeline.corpora import sources
from pipeline.corpora.catalog import Options
from pipeline.corpora.conversation import Turn
from pipeline.corpora.dialogues import elitr, hmnet
from pipeline.corpora.example import SPLITS
from pipeline.corpora.readers import read_source
from pipeline.corpora.statistics import equal_texts
from pipeline.corpora.text import joined
from pipeline.errors import QuorumError
from pipeline.workspace.files import write_bytes, write_jsonl


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


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("it 's fine , is n't it ?", "it's fine, isn't it?"),
        ("the L_C_D and two T_V_s", "the LCD and two TVs"),
        ("{vocalsound} we 'll see ( maybe ) .", "we'll see (maybe)."),
    ],
)
def test_tokens_become_running_text(tokens: str, text: str) -> None:
    assert joined(tokens.split()) == text


def turn(speaker: str, role: str, words: str) -> dict[str, Any]:
    return {"speaker": speaker, "role": role, "utt": {"word": words.split()}}


def test_roles_are_speakers(tmp_path: Path) -> None:
    """AMI's four roles are one person each; ICSI's titles are shared, so the letter stays."""
    row = {
        "id": "ES2004a",
        "meeting": [turn("B", "PM", "Let 's start ."), turn("C", "Grad", "Yes ."), turn("D", "UI", "{laugh}")],
        "summary": ["The PM opened .", "All agreed ."],
    }
    for split in ("train", "dev", "test"):
        write_bytes(tmp_path / split / "split_0.jsonl.gz", gzip.compress(json.dumps(row).encode()))
    dialogues = list(hmnet(tmp_path))
    assert [one.split for one in dialogues] == list(SPLITS)
    assert dialogues[0].turns == (Turn("Project Manager", "Let's start."), Turn("Grad C", "Yes."))
    assert (dialogues[0].meeting, dialogues[0].summary) == ("ES2004a", "The PM opened. All agreed.")


def test_elitr_utterances_and_minutes(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        meeting = tmp_path / split / f"meeting_en_{split}_001"
        meeting.mkdir(parents=True)
        (meeting / "transcript_MAN2_annot11.txt").write_text("(PERSON1) Hi <laugh> all.\nSo let's go.\n(PERSON2) Yes\n")
        (meeting / "minutes_GENER_annot02.txt").write_text("- Other words\n")
        (meeting / "minutes_GENER_annot01.txt").write_text("* PERSON1 greets\n  - They begin.\n")
        (meeting / "minutes_ORIG.txt").write_text("agenda")
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
def test_what_only_its_publisher_gives_says_how_to_get_it(
    corpus: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUORUM_MIRROR", str(tmp_path))
    with pytest.raises(QuorumError, match=where):
        sources.choose(corpus, "auto")


@pytest.mark.parametrize(
    ("corpus", "file", "content", "message"),
    [
        ("samsum", "samsum.zip", None, "samsum.zip.*; run `dvc repro ingest@samsum`"),
        ("samsum", "samsum.zip", b"PK", "File is not a zip file"),
        ("ami", "train/a.jsonl.gz", b"no gzip", "Not a gzipped file"),
        ("ami", "train/a.jsonl.gz", gzip.compress(b'{"id": 1}', mtime=0), "KeyError.'meeting'"),
        ("ami", "other/a.jsonl.gz", b"", "holds no train example"),
        ("elitr", "train/may/transcript.txt", b"\xff", "invalid start byte.*hdl.handle.net"),
        ("meetingbank", "train.json", b"{}", "KeyError.'uid'.*huggingface.co"),
        ("meetingbank", "train.json", b"{", r"train\.json: line 1: malformed JSON"),
    ],
)
def test_a_file_that_is_not_as_published_is_one_line(
    corpus: str, file: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        write_bytes(tmp_path / file, content)
    with pytest.raises(QuorumError, match=message) as caught:
        read_source(corpus, tmp_path, Options(query="q"))
    assert "\n" not in str(caught.value)


HMNET = "hmnet/ExampleRawData/meeting_summarization"


@needs_mirror
@pytest.mark.parametrize(
    ("corpus", "folder", "pairs", "words", "summary_words", "domain"),
    [
        ("samsum", "samsum", [14731, 818, 819], 80, 20.3, ""),
        ("ami", f"{HMNET}/AMI_proprec", [97, 20, 20], 4000, 277, "Product"),
        ("icsi", f"{HMNET}/ICSI_proprec", [43, 10, 6], 9000, 494, "Academic"),
    ],
)
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
