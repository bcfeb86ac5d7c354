"""Choosing the turns of a new meeting that fit, and reading all of it in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpora.conversation import Turn
from pipeline.errors import QuorumError
from pipeline.model.backbone import Rendered
from pipeline.runs.parts import divided, pieces
from pipeline.runs.summarize import Summarizer, nearest_turns, turn_range


def test_turns_are_counted_from_one_and_a_range_outside_the_transcript_is_one_line() -> None:
    assert [turn_range(text, 9) for text in (None, "1-9", "3-3")] == [(0, 9), (0, 9), (2, 3)]
    for text in ("0-3", "4-2", "1-10", "x", "3"):
        with pytest.raises(QuorumError, match="1 <= A <= B <= 9"):
            turn_range(text, 9)


@pytest.mark.parametrize(("most", "chosen"), [(0, [3]), (1, [3]), (2, [1, 3]), (9, [0, 1, 2, 3])])
def test_the_turns_nearest_to_the_query_are_chosen_in_order(most: int, chosen: list[int]) -> None:
    """As many as fit, and one that does not fit alone."""
    meeting = [
        Turn("A", "The weather was lovely at the seaside."),
        Turn("B", "The battery of the remote lasts two days."),
        Turn("A", "My cat sleeps all day."),
        Turn("B", "What about the battery? We should buy a larger battery."),
    ]
    assert nearest_turns(meeting, "What was said about the battery?", lambda turns: len(turns) <= most) == chosen


@pytest.mark.parametrize(
    ("sizes", "parts", "apart"),
    [
        ([4, 4], [(0, 2)], [(0, 2)]),
        # Three fit, of which a later part has two that are new.
        ([4] * 6, [(0, 2), (1, 4), (3, 6)], [(0, 3), (3, 6)]),
        # 3, 3, 1 would leave one turn alone: 12² + 12² + 4² = 304, and 8² + 8² + 12² = 272.
        ([4] * 7, [(0, 3), (2, 5), (4, 7)], [(0, 2), (2, 4), (4, 7)]),
        ([4, 30, 4, 4], [(0, 1), (1, 2), (2, 4)], [(0, 1), (1, 2), (2, 4)]),
        ([8, 8], [(0, 1), (1, 2)], [(0, 1), (1, 2)]),
        ([], [], []),
    ],
)
def test_parts_are_few_and_even(sizes: list[int], parts: list[tuple[int, int]], apart: list[tuple[int, int]]) -> None:
    """Of 12 tokens, with and without a turn that two parts share: none where the two at a boundary do not fit."""
    for expected, overlap in ((parts, True), (apart, False)):
        assert [(part.start, part.stop) for part in divided(sizes, 12, overlap=overlap)] == expected


@given(st.lists(st.integers(1, 15), max_size=30))
def test_every_turn_is_in_a_part_that_fits(sizes: list[int]) -> None:
    parts = divided(sizes, 12)
    assert sorted({place for part in parts for place in part}) == list(range(len(sizes)))
    assert all(sum(sizes[place] for place in part) <= 12 or len(part) == 1 for part in parts)
    for part, after in zip(parts, parts[1:], strict=False):
        shared = sizes[part.stop - 1] + sizes[part.stop] <= 12
        assert after.start == part.stop - shared


def test_a_turn_that_does_not_fit_is_in_pieces_of_half_a_part() -> None:
    """Twenty letters are 10 tokens, and 6 fit: pieces of at most 20 · 6 / (2 · 10) letters, also without spaces."""
    assert pieces(Turn("A", "aaa bbb ccccc ddd ee"), 10, 6) == [
        *(Turn("A", text) for text in ("aaa", "bbb", "ccccc", "ddd ee"))
    ]
    assert pieces(Turn("A", "会议" * 10), 10, 6) == [
        Turn("A", text) for text in ("会议会议会议", "会议会议会议", "会议会议会议", "会议")
    ]
    assert pieces(Turn("A", "aaa bbb"), 6, 6) == [Turn("A", "aaa bbb")]


@dataclass(frozen=True)
class Reader(Summarizer):
    """Reads `room` words, and writes what `answer` makes of turns and query."""

    answer: Callable[[Sequence[Turn], str], str]
    room: int

    def window(self, turns: Sequence[Turn], query: str) -> Rendered:
        words = sum(len(turn.text.split()) for turn in turns)
        return Rendered((turns, query), (), words, min(words, self.room))  # type: ignore[arg-type]

    def _write(self, windows: Sequence[Rendered]) -> list[str]:
        return [self.answer(*window.source) for window in windows]  # type: ignore[arg-type]


def reader(answer: Callable[[Sequence[Turn], str], str], room: int = 12) -> Reader:
    reading: Any = SimpleNamespace(view=SimpleNamespace(source_tokens=99))
    nothing: Any = None
    return Reader("may", reading, nothing, nothing, "Parts: {query}", answer, room)


MEETING = [Turn("A", f"{number} b c") for number in range(1, 7)]
"""Six turns of three words, which count as four: two or three fit."""


def test_summaries_of_parts_are_summarized_and_one_that_is_empty_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The parts are turns 1-2, 2-4, 4-6 of the meeting, which begins with turn 11. The second gives nothing."""

    def answer(turns: Sequence[Turn], query: str) -> str:
        first = turns[0].text.split()[0]
        return "" if first == "2" else f"{query} {'; '.join(f'{turn.speaker} {turn.text}' for turn in turns)}"

    found = reader(lambda turns, query: answer(turns, query) if "Parts" in query else answer(turns[:1], "s"))
    assert found.of_parts(MEETING, "Q?", first=11) == "Parts: Q? 1 s A 1 b c; 3 s A 4 b c"
    assert capsys.readouterr().err.splitlines() == [
        "may: 6 turns do not fit 99 tokens: 3 parts; --parts one: what fits",
        "may: part 1 of 3: turns 11-12",
        "may: part 2 of 3: turns 12-14: it gave no summary, so the result lacks it",
        "may: part 3 of 3: turns 14-16",
    ]


def test_summaries_that_do_not_fit_together_are_merged_a_few_at_once() -> None:
    """Four summaries of five words and their separators: two fit twelve, so there are two, then one."""
    several = [Turn(str(number), f"{number} b c d e") for number in range(1, 5)]
    merged = reader(lambda turns, _: f"({' + '.join(turn.text.split()[0] for turn in turns)}) b c")
    assert merged._merged(several, "Q") == "((1 + (3) b c"


@pytest.mark.parametrize(
    ("words", "said"), [(8, "too long to be merged, so they follow"), (5, "merging 2 summaries gave nothing")]
)
def test_summaries_that_cannot_be_merged_follow_one_another(
    words: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    several = [Turn(str(number), " ".join([str(number)] * words)) for number in (1, 2)]
    assert reader(lambda *_: "")._merged(several, "Q") == " ".join(["1"] * words + ["2"] * words)
    assert said in capsys.readouterr().err


def test_a_long_turn_is_read_in_pieces_that_have_its_number() -> None:
    """Twenty words of one turn, 12 of which fit: pieces of about six."""
    found = reader(lambda *_: "").parts([Turn("A", " ".join("abcdefghijklmnopqrst")), Turn("B", "yes")], "Q")
    assert [places for places, _ in found] == [[0], [0], [0, 1]]
    assert all(window.transcript_read == window.transcript_tokens for _, window in found)
