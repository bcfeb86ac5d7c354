"""Transcripts as Zoom, Teams, Meet and Webex export them, on short made-up meetings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import process_time

import pytest

from pipeline.corpora.conversation import Turn
from pipeline.corpora.transcripts import read
from pipeline.errors import QuorumError

ANN_AND_BOB = [
    Turn("Ann Lee", "Shall we begin?"),
    Turn("Bob", "Yes. The budget is short."),
    Turn("Ann Lee", "How much?"),
]

TIMES = "00:00:01.000 --> 00:00:03.000"


def cues(*parts: str) -> str:
    """Cues, each with its identifier and its words."""
    return "\n".join(f"{name}\n{TIMES}\n{words}\n" for name, words in zip(parts[::2], parts[1::2], strict=True))


COLONS = (
    *("1", "Ann Lee: Shall we begin?", "2", "Bob: Yes.", "3", "Bob: The budget is short."),
    *("4", "Ann Lee: How much?"),
)
VOICES = (
    *("aaa-0", "<v Ann Lee>Shall we\nbegin?</v> <v Bob>Yes.</v>"),
    *("aaa-1", "<v Bob>The budget is short.</v>", "aaa-2", "<v.first Ann Lee>How much?</v>"),
)
NAMES = (
    *('1 "Ann Lee" (1001)', "Shall we begin?", '2 "Bob" (1002)', "Yes. The budget is short."),
    *('3 "Ann Lee" (1001)', "How much?"),
)
SRT = ("1", "Ann Lee: Shall we begin?", "2", "Bob: Yes.\nThe budget is short.", "3", "Ann Lee: How much?")
ZOOM_TXT = (
    "[Ann Lee] 10:15:02\nShall we begin?\n\n[Bob] 10:15:04\nYes. The budget is short.\n\n[Ann Lee] 10:15:09\nHow much?"
)
MEET_TXT = "00:00:00\n\nAnn Lee: Shall we begin?\nBob: Yes.\nThe budget is short.\n\n00:05:00\n\nAnn Lee: How much?\n"
TIMED_TXT = (
    "[00:00:01] Ann Lee: Shall we begin?\n[00:00:03] Bob: Yes. The budget is short.\n[00:00:08] Ann Lee: How much?\n"
)
TEAMS_LINES = "Ann Lee   0:03\nShall we begin?\nBob   0:05\nYes.\nThe budget is short.\nAnn Lee   0:09\nHow much?"
QMSUM = json.dumps({"meeting_transcripts": [{"speaker": t.speaker, "content": t.text} for t in ANN_AND_BOB]})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("zoom.vtt", f"WEBVTT\n\n{cues(*COLONS)}"),
        ("teams.vtt", f"WEBVTT\n\n{cues(*VOICES)}"),
        ("webex.vtt", f"WEBVTT\n\n{cues(*NAMES)}"),
        ("any.srt", cues(*SRT).replace(".000", ",000")),
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
    assert list(read(path).turns) == ANN_AND_BOB


@pytest.mark.parametrize("paragraphs", [TEAMS_LINES.split("\n"), re.split(r"\n(?=\w.*0:)", TEAMS_LINES)])
def test_a_word_document_has_a_line_or_a_turn_a_paragraph(paragraphs: list[str], tmp_path: Path) -> None:
    from docx import Document

    document = Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    document.save(str(tmp_path / "teams.docx"))
    assert list(read(tmp_path / "teams.docx").turns) == ANN_AND_BOB


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    turn = Turn(
        "Zoë Müller", "Über die Kosten müssen wir noch einmal sprechen, denn für das nächste Jahr fehlt uns Geld."
    )
    (tmp_path / "a.txt").write_bytes(f"{turn.speaker}: {turn.text}\n".encode(encoding) * 5)
    assert read(tmp_path / "a.txt").turns[0] == turn


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("Ann: See you at 10:30.\nhttps://x.org is it", [Turn("Ann", "See you at 10:30. https://x.org is it")]),
        ("Ann: Then\nwe can meet at 10:30\nBob: Yes", [Turn("Ann", "Then we can meet at 10:30"), Turn("Bob", "Yes")]),
        (
            "Date: Monday\nAnn Lee   0:03\nThe pharmacy said: we are closed.\n\nTwo options: a new one, or none.\n"
            "[Bob] 10:15:02\nNote: it is late.\n",
            [
                Turn("Date", "Monday"),
                Turn("Ann Lee", "The pharmacy said: we are closed. Two options: a new one, or none."),
                Turn("Bob", "Note: it is late."),
            ],
        ),
    ],
    ids=["a time or an address is no speaker", "words end with a time", "below a heading a colon names no speaker"],
)
def test_words_are_their_speakers(text: str, turns: list[Turn], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert list(read(tmp_path / "a.txt").turns) == turns


N = 200_000
SIGNS = ("<", "<v ", "1", "{ ", "word ", ":", "[a](", "&#1", '"', "0:00 --> ", '!"', "a:b ")


@pytest.mark.parametrize("ending", ["txt", "vtt", "srt"])
@pytest.mark.parametrize(
    "line",
    [" " * 2_000 + "a b", " " * N + "a b", "a" + " " * N + "b", *(sign * (N // len(sign)) for sign in SIGNS)],
    ids=lambda line: f"{len(line)} of {line[:5]!r}",
)
def test_a_line_of_any_length_is_read_in_little_time(line: str, ending: str, tmp_path: Path) -> None:
    """Milliseconds of processor; in time that grows with the square of the length each would take hours."""
    path = tmp_path / f"a.{ending}"
    words = f"Ann: x\n{line}"
    path.write_text({"txt": words, "vtt": f"WEBVTT\n\n{cues('1', words)}", "srt": cues("1", words)}[ending])
    began = process_time()
    (turn,) = read(path).turns
    assert process_time() - began < 5
    assert turn.speaker == "Ann"


REVERSED = b"""{"meeting_transcripts": [{"speaker": "A", "content": "a"}],
 "specific_query_list": [{"query": "q", "answer": "a", "relevant_text_span": [["3", "1"]]}]}"""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"Ann: a\0b\n", "is no text in any known encoding"),
        ("a.json", b'{"meeting_transcripts": [{"speaker": "A", "content": "\\ud800"}]}', "half of a surrogate pair"),
        ("a.json", b"[" * 100_000, "malformed JSON"),
        ("a.json", b"1" * 5_000, "malformed JSON"),
        ("a.vtt", b"WEBVTT\n", "has no turn"),
        ("a.sbv", b"Ann: not a subtitle\n", "has no turn"),
        ("a.txt", b"\n\n", "has no turn"),
        ("a.vtt", b"Ann: not a vtt\n", "has no turn"),
        ("a.srt", b"Ann: not an srt\n", "has no turn"),
        ("a.docx", b"PK no document", "is no Word document"),
        ("a.pdf", b"%PDF", ".pdf is no format that is read; export the meeting as .vtt, .srt, .docx, .txt, .json"),
        ("a.json", b"{}", "not a QMSum meeting: meeting_transcripts: is missing"),
        ("a.json", b'{"meeting_transcripts": []}', "meeting_transcripts: List should have at least 1 item"),
        ("a.json", b'{"meeting_transcripts": [{"speaker": "A"}]}', "meeting_transcripts.0.content: is missing"),
        ("a.json", REVERSED, "specific_query_list.0.relevant_text_span: [3, 1] runs backwards"),
        ("gone.vtt", None, "gone.vtt: no such file"),
    ],
)
def test_a_file_that_is_none_is_one_line(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(QuorumError) as caught:
        read(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
