"""Rows for orientation: what turns of the source score as its summary, which costs nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from pipeline.corpora.example import Example
from pipeline.evaluation.scores import Scored, by_client
from pipeline.tasks.task import Prediction, Task

TURNS = 3
"""Of a source: the first three, or three at random."""

Orientation = Mapping[str, Mapping[str, Mapping[str, float]]]
"""What cost nothing -> client -> its mean scores."""


def lead(example: Example) -> str:
    """The first three turns."""
    return " ".join(turn.text for turn in example.turns[:TURNS])


def at_random(example: Example) -> str:
    """Three turns, in their order; a function of the example alone."""
    chosen = random.Random(example.id).sample(range(len(example.turns)), min(TURNS, len(example.turns)))
    return " ".join(example.turns[i].text for i in sorted(chosen))


ROWS: dict[str, Callable[[Example], str]] = {"lead-3 turns": lead, "random turns": at_random}


def orientation_of(
    task: Task, examples: Mapping[str, Example], tested: Sequence[Scored], *, use_stemmer: bool
) -> Orientation:
    """Scores on the examples that a run was tested on."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, write in ROWS.items():
        found[name] = {}
        for client, rows in by_client(tested).items():
            own = [examples[row.id] for row in rows]
            scores = task.score(
                [example.target for example in own], [Prediction(write(one)) for one in own], use_stemmer=use_stemmer
            )
            found[name][client] = {m: fmean(row[m] for row in scores) for m in scores[0]}
    return found
