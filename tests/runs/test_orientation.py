"""Rows for orientation: summaries that cost nothing."""

from __future__ import annotations

import pytest

from pipeline.corpora.example import Example, Turn
from pipeline.evaluation.scores import Scored
from pipeline.runs.orientation import at_random, lead, orientation_of
from pipeline.tasks.summarize import TASK


def example(identity: str, *turns: str, target: str = "t") -> Example:
    return Example(identity, "q", "A", "test", "m", "q", tuple(Turn("A", text) for text in turns), target)


def test_what_costs_nothing_is_turns_of_the_source() -> None:
    five = example("i", *map(str, range(5)))
    assert lead(five) == "0 1 2"
    drawn = at_random(five).split()
    assert len(drawn) == 3
    assert drawn == sorted(drawn)
    assert at_random(five) == at_random(five)
    assert lead(example("i")) == at_random(example("i")) == ""


def test_a_source_of_three_turns_is_drawn_whole() -> None:
    assert at_random(example("i", "a", "b", "c")) == "a b c"
    assert at_random(example("i", "a")) == "a"


def test_they_are_scored_on_what_a_run_was_tested_on() -> None:
    """A's two references are the first three turns, and nothing of them: (100 + 0) / 2. B's is half of them.

    Of B's reference `a b` and the turns `a b c` P is 2/3 and R is 1 in R-1 and R-L, so F1 is 80.
    """
    examples = {
        "1": example("1", "a", "b", "c", "d", target="a b c"),
        "2": example("2", "a", "b", "c", "d", target="x y z"),
        "3": example("3", "a", "b", "c", "d", target="a b"),
    }
    tested = [Scored(i, client, "m", 1, {}) for i, client in (("1", "A"), ("2", "A"), ("3", "B"))]
    found = orientation_of(TASK, examples, tested, use_stemmer=False)["lead-3 turns"]
    assert {client: (own["rouge1"], own["rougeL"]) for client, own in found.items()} == {
        "A": (50.0, 50.0),
        "B": (pytest.approx(80.0), pytest.approx(80.0)),
    }
