"""Transcripts as Zoom, Teams, Meet and Webex export them, on short made-up meetings."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest

from pipeline.corpora.example import Turn
from pipeline.corpora.transcripts import READERS, read_transcript, text_of
from pipeline.errors import QuorumError

ANN_AND_BOB = [
    Turn("Ann Lee", "Shall we begin?"),
    Turn("Bob", "Yes. The budget is short."),
    Turn("Ann Lee", "How much?"),
]

ZOOM_VTT = """WEBVTT

1
00:00:01.000 --> 00:00:03.000
Ann Lee: Shall we begin?

2
00:00:03.500 --> 00:00:05.000
Bob: Yes.

3
00:00:05.000 --> 00:00:07.000
Bob: The budget is short.

4
00:00:08.000 --> 00:00:09.000
Ann Lee: How much?
"""
TEAMS_VTT = """WEBVTT

aaa-0
00:00:01.000 --> 00:00:03.000
<v Ann Lee>Shall we
begin?</v> <v Bob>Yes.</v>

aaa-1
00:00:05.000 --> 00:00:07.000
<v Bob>The budget is short.</v>

aaa-2
00:00:08.000 --> 00:00:09.000
<v.first Ann Lee>How much?</v>
"""
WEBEX_VTT = """WEBVTT

1 "Ann Lee" (1001)
00:00:01.000 --> 00:00:03.000
Shall we begin?

2 "Bob" (1002)
00:00:03.500 --> 00:00:07.000
Yes. The budget is short.

3 "Ann Lee" (1001)
00:00:08.000 --> 00:00:09.000
How much?
"""
SRT = """1
00:00:01,000 --> 00:00:03,000
Ann Lee: Shall we begin?

2
00:00:03,500 --> 00:00:07,000
Bob: Yes.
The budget is short.

3
00:00:08,000 --> 00:00:09,000
Ann Lee: How much?
"""
ZOOM_TXT = """[Ann Lee] 10:15:02
Shall we begin?

[Bob] 10:15:04
Yes. The budget is short.

[Ann Lee] 10:15:09
How much?
"""
MEET_TXT = """00:00:00

Ann Lee: Shall we begin?
Bob: Yes.
The budget is short.

00:05:00

Ann Lee: How much?
"""
TIMED_TXT = (
    "[00:00:01] Ann Lee: Shall we begin?\n[00:00:03] Bob: Yes. The budget is short.\n[00:00:08] Ann Lee: How much?\n"
)
TEAMS_LINES = "Ann Lee   0:03\nShall we begin?\nBob   0:05\nYes.\nThe budget is short.\nAnn Lee   0:09\nHow much?"
QMSUM = json.dumps({"meeting_transcripts": [{"speaker": t.speaker, "content": t.text} for t in ANN_AND_BOB]})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("zoom.vtt", ZOOM_VTT),
        ("teams.vtt", TEAMS_VTT),
        ("webex.vtt", WEBEX_VTT),
        ("any.srt", SRT),
        ("zoom.txt", ZOOM_TXT),
        ("meet.txt", MEET_TXT),
        ("timed.txt", TIMED_TXT),
        ("teams.txt", TEAMS_LINES),
        ("qmsum.json", QMSUM),
    ],
)
def test_every_export_says_the_same(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert read_transcript(path) == ANN_AND_BOB


@pytest.mark.parametrize("broken_lines", [False, True], ids=["a paragraph a line", "breaks within a paragraph"])
def test_a_word_document_says_it_too(broken_lines: bool, tmp_path: Path) -> None:
    from docx import Document

    document = Document()
    if broken_lines:
        for part in (
            "Ann Lee   0:03\nShall we begin?",
            "Bob   0:05\nYes. The budget is short.",
            "Ann Lee   0:09\nHow much?",
        ):
            document.add_paragraph(part)
    else:
        for line in TEAMS_LINES.splitlines():
            document.add_paragraph(line)
    document.save(str(tmp_path / "teams.docx"))
    assert read_transcript(tmp_path / "teams.docx") == ANN_AND_BOB


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    text = (
        "Zoë Müller: Über die Kosten müssen wir noch einmal sprechen, denn für das nächste Jahr fehlt uns Geld.\n" * 5
    )
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding))
    assert text_of(path).startswith("Zoë Müller: Über die Kosten")
    assert read_transcript(path)[0].speaker == "Zoë Müller"


def test_a_time_or_an_address_is_no_speaker(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Ann: See you at 10:30.\nhttps://example.org is the page\n", encoding="utf-8")
    assert read_transcript(path) == [Turn("Ann", "See you at 10:30. https://example.org is the page")]


def test_words_below_a_heading_are_its_speakers_up_to_the_next(tmp_path: Path) -> None:
    """A colon within them names nobody."""
    path = tmp_path / "a.txt"
    path.write_text(
        "Date: Monday\nAnn Lee   0:03\nThe pharmacy said: we are closed.\n\nTwo options: a new one, or none.\n"
        "[Bob] 10:15:02\nNote: it is late.\n"
    )
    assert read_transcript(path) == [
        Turn("Date", "Monday"),
        Turn("Ann Lee", "The pharmacy said: we are closed. Two options: a new one, or none."),
        Turn("Bob", "Note: it is late."),
    ]


def test_words_that_end_with_a_time_are_no_heading_among_colons(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Ann: Then\nwe can meet at 10:30\nBob: Yes.\n")
    assert read_transcript(path) == [Turn("Ann", "Then we can meet at 10:30"), Turn("Bob", "Yes.")]


N = 200_000


@pytest.mark.parametrize("ending", ["txt", "vtt", "srt"])
@pytest.mark.parametrize(
    "line",
    [" " * 2_000 + "a b", " " * N + "a b", "a" + " " * N + "b", "<" * N, "<v " * N, "1" * N, "{ " * N, "word " * N],
    ids=lambda line: f"{len(line)} of {line[:5]!r}",
)
def test_a_line_of_any_length_is_read_in_little_time(line: str, ending: str, tmp_path: Path) -> None:
    """Milliseconds of processor; in time that grows with the square of the length each would take hours."""
    path = tmp_path / f"a.{ending}"
    begin = {
        "txt": "",
        "vtt": "WEBVTT\n\n1\n00:00:01.000 --> 00:00:03.000\n",
        "srt": "1\n00:00:01,000 --> 00:00:03,000\n",
    }
    path.write_text(f"{begin[ending]}Ann: x\n{line}\n")
    began = process_time()
    (turn,) = read_transcript(path)
    assert process_time() - began < 5
    assert turn.speaker == "Ann"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"Ann: a\0b\n", "is no text in any known encoding"),
        ("a.json", b'{"meeting_transcripts": [{"speaker": "A", "content": "\\ud800"}]}', "half of a surrogate pair"),
        ("a.json", b"[" * 100_000, "malformed JSON"),
        ("a.json", b"1" * 5_000, "malformed JSON"),
        ("a.txt", b"no speaker here\n", "line 1: no speaker; begin lines with `Speaker: `"),
        ("a.txt", b"\n\n", "the transcript is empty"),
        ("a.vtt", b"Ann: not a vtt\n", "is no WebVTT"),
        ("a.srt", b"Ann: not an srt\n", "is no SubRip"),
        ("a.docx", b"PK no document", "is no Word document"),
        ("a.pdf", b"%PDF", ".pdf is no format that is read; export the meeting as .vtt, .srt, .docx, .txt, .json"),
        ("a.json", b"{}", "not a QMSum meeting"),
    ],
)
def test_a_file_that_is_none_is_one_line(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(QuorumError) as caught:
        read_transcript(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match=r"gone.vtt: no such file"):
        read_transcript(tmp_path / "gone.vtt")


def test_every_reader_is_tried() -> None:
    assert set(READERS) == {".vtt", ".srt", ".docx", ".txt", ".json"}
