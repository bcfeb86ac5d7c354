"""Choosing the turns of a new meeting that fit."""

from __future__ import annotations

import pytest

from pipeline.corpora.conversation import Turn
from pipeline.errors import QuorumError
from pipeline.runs.summarize import nearest_turns, turn_range


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
