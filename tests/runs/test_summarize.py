"""Choosing the turns of a new meeting that fit, and reading all of it in parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpora.conversation import Turn
from pipeline.corpora.organisation import turn_range
from pipeline.errors import QuorumError
from pipeline.runs import summarize
from pipeline.runs.parts import divided, pieces
from pipeline.runs.summarize import Summarizer, nearest_turns


def test_turns_are_counted_from_one_and_a_range_outside_the_transcript_is_one_line() -> None:
    assert [turn_range(text, 9, "--turns") for text in ("", "1-9", "3-3", "3")] == [(0, 9), (0, 9), (2, 3), (2, 3)]
    for text in ("0-3", "4-2", "1-10", "x"):
        with pytest.raises(QuorumError, match="1 <= A <= B <= 9"):
            turn_range(text, 9, "--turns")


@pytest.mark.parametrize(("most", "chosen"), [(0, [3]), (1, [3]), (2, [1, 3]), (9, [0, 1, 2, 3])])
def test_the_turns_nearest_to_the_query_are_chosen_in_order(most: int, chosen: list[int]) -> None:
    """As many as fit, and one that does not fit alone."""
    texts = ["The weather was lovely at the seaside.", "The battery of the remote lasts two days."]
    texts += ["My cat sleeps all day.", "What about the battery? We should buy a larger battery."]
    meeting = [Turn("A", text) for text in texts]
    assert nearest_turns(meeting, "What was said about the battery?", lambda turns: len(turns) <= most) == chosen


@pytest.mark.parametrize(
    ("sizes", "overlap", "parts"),
    [
        ([4, 4], True, [(0, 2)]),
        ([4] * 7, True, [(0, 3), (2, 5), (4, 7)]),
        # 3, 3, 1 would be 12² + 12² + 4² = 304; this is 8² + 8² + 12² = 272
        ([4] * 7, False, [(0, 2), (2, 4), (4, 7)]),
        ([4, 30, 4, 4], True, [(0, 1), (1, 2), (2, 4)]),
        ([8, 8], True, [(0, 1), (1, 2)]),
    ],
)
def test_parts_of_twelve_tokens_are_few_and_even(sizes: list[int], overlap: bool, parts: list[tuple[int, int]]) -> None:
    """Two parts share a turn where it fits with the one behind it."""
    assert [(part.start, part.stop) for part in divided(sizes, 12, overlap=overlap)] == parts


@given(st.lists(st.integers(1, 15), max_size=30))
def test_every_turn_is_in_a_part_that_fits(sizes: list[int]) -> None:
    parts = divided(sizes, 12)
    assert sorted({place for part in parts for place in part}) == list(range(len(sizes)))
    assert all(sum(sizes[place] for place in part) <= 12 or len(part) == 1 for part in parts)
    assert all(after.start == part.stop - (sum(sizes[part.stop - 1 :][:2]) <= 12) for part, after in pairwise(parts))


def test_a_turn_that_does_not_fit_is_in_pieces_of_half_a_part() -> None:
    """Twenty letters are 10 tokens, and 6 fit: pieces of at most 20 · 6 / (2 · 10) letters, also without spaces."""
    found = [[one.text for one in pieces(Turn("A", text), 10, 6)] for text in ("aaa bbb ccccc ddd ee", "会议" * 10)]
    assert found == [["aaa", "bbb", "ccccc", "ddd ee"], ["会议会议会议"] * 3 + ["会议"]]
    assert pieces(Turn("A", "aaa bbb"), 6, 6) == [Turn("A", "aaa bbb")]


@dataclass(frozen=True)
class Reader(Summarizer):
    """Reads twelve words, and writes what `answer` makes of turns and query."""

    answer: Callable[[Sequence[Turn], str], str]

    def window(self, turns: Sequence[Turn], query: str) -> Any:
        words = sum(len(turn.text.split()) for turn in turns)
        return SimpleNamespace(read=(turns, query), transcript_tokens=words, transcript_read=min(words, 12))

    def _write(self, windows: Sequence[Any]) -> list[str]:
        return [self.answer(*window.read) for window in windows]


def reader(answer: Callable[[Sequence[Turn], str], str]) -> Reader:
    nothing: Any = SimpleNamespace(view=SimpleNamespace(source_tokens=99))
    return Reader("may", nothing, nothing, nothing, "Parts: {query}", answer)


def test_summaries_of_parts_are_summarized_and_one_that_is_empty_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Six turns of three words, and one between turns. The second part gives nothing."""

    def answer(turns: Sequence[Turn], query: str) -> str:
        if query == "Parts: Q?":
            return "; ".join(f"{turn.speaker} {turn.text}" for turn in turns)
        return "" if turns[0].text == "2 b c" else f"from {turns[0].text}"

    meeting = [Turn("A", f"{number} b c") for number in range(1, 7)]
    assert reader(answer).of_parts(meeting, "Q?", first=11) == "1 from 1 b c; 2 from 4 b c"
    assert capsys.readouterr().err.splitlines() == [
        "may: 6 turns do not fit 99 tokens: 3 parts; --parts one: what fits",
        "may: part 1 of 3: turns 11-12",
        "may: part 2 of 3: turns 12-14: it gave no summary, so the result lacks it",
        "may: part 3 of 3: turns 14-16",
    ]


def test_summaries_that_do_not_fit_together_are_merged_a_few_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Of four with five words each two fit, so there are two, then one. What cannot be merged follows one another."""
    merged = reader(lambda turns, _: f"({'+'.join(turn.text.split()[0] for turn in turns)}) b c d e")
    assert merged._merged([f"{number} b c d e" for number in range(1, 5)], "Q") == "((1+2)+(3+4)) b c d e"
    for words, made in ((8, "merged"), (5, "")):  # two of eight words do not fit; of two of five nothing is made
        several = ["a " * words + "b", "c " * words + "d"]
        assert reader(lambda *_, made=made: made)._merged(several, "Q") == " ".join(several)
        assert "could not be merged, so they follow one another" in capsys.readouterr().err


def test_a_run_that_is_not_trained_yet_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = SimpleNamespace(id="x/42", name="x", seed=42, left_out=None)
    monkeypatch.setattr(summarize, "planned_runs", lambda: [planned])
    with pytest.raises(QuorumError, match="--run x: is not trained yet; run `make repro`"):
        summarize.row_of("x", "client")
