"""Reading a new meeting, and choosing the turns that fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.corpora.conversation import Turn
from pipeline.corpora.transcripts import read_transcript
from pipeline.errors import QuorumError
from pipeline.runs.summarize import nearest_turns, turn_range


def test_plain_text_is_speaker_lines(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("Ann: Good morning {pause} all.\n\nBob Smith: At 9:30 we start.\nand we end at ten.\n")
    assert read_transcript(path) == [
        Turn("Ann", "Good morning all."),
        Turn("Bob Smith", "At 9:30 we start. and we end at ten."),
    ]


def test_qmsum_json_needs_no_queries(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"meeting_transcripts": [{"speaker": "A", "content": "the L_C_D_"}]}))
    assert read_transcript(path) == [Turn("A", "the LCD")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.txt", b"", "transcript is empty"),
        ("m.txt", b"just words\n", "line 1: no speaker"),
        ("m.json", b"{", "malformed JSON"),
        ("m.json", b"[]", "not a QMSum meeting"),
        ("m.json", b'{"meeting_transcripts": []}', "at least 1 item"),
        (None, b"", "no such file"),
    ],
)
def test_a_meeting_that_cannot_be_read_is_one_line(
    tmp_path: Path, name: str | None, content: bytes, message: str
) -> None:
    path = tmp_path / (name or "missing.txt")
    if name:
        path.write_bytes(content)
    with pytest.raises(QuorumError, match=message):
        read_transcript(path)


@pytest.mark.parametrize(("text", "expected"), [(None, (0, 9)), ("1-9", (0, 9)), ("3-3", (2, 3))])
def test_turns_are_counted_from_one(text: str | None, expected: tuple[int, int]) -> None:
    assert turn_range(text, 9) == expected


@pytest.mark.parametrize("text", ["0-3", "4-2", "1-10", "x", "3"])
def test_a_range_outside_the_transcript_is_one_line(text: str) -> None:
    with pytest.raises(QuorumError, match="1 <= A <= B <= 9"):
        turn_range(text, 9)


def test_the_turns_nearest_to_the_query_are_kept_in_order() -> None:
    meeting = [
        Turn("A", "The weather was lovely at the seaside."),
        Turn("B", "The battery of the remote lasts two days."),
        Turn("A", "My cat sleeps all day."),
        Turn("B", "We should buy a larger battery for the remote."),
    ]
    chosen = nearest_turns(meeting, "What was said about the battery?", lambda turns: len(turns) <= 2)
    assert chosen == [1, 3]
