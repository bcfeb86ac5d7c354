"""Which meetings are tested: QMSum's own split, or one of two more that between them test every other meeting once.

Queries of one meeting are not independent, so a federation is compared by meetings, of which the official test has 35.
The other 197 are dealt into two halves by hash, an AMI series (four meetings of one group) never apart. A fold tests
one half, validates on a few meetings of the rest, and trains on what is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from pipeline.corpora.example import Example, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.qmsum import DOMAINS

Fold = Literal["official", "first", "second"]
FOLDS: tuple[Fold, ...] = get_args(Fold)
HALVES: tuple[Fold, Fold] = ("first", "second")
AMI = re.compile(r"[EIT]S\d{4}[a-d]")
"""A meeting's name in AMI: the second of series 2002 in Edinburgh is ES2002b."""
VALIDATION_EXAMPLES = 40
"""At least so many are held out of a client's training in a fold of our own."""


def refolded(examples: Mapping[str, Example], fold: Fold) -> dict[str, Example]:
    """The same examples, those of QMSum's domains in the splits of a fold; all others stay where they are."""
    if fold == "official":
        return dict(examples)
    found = dict(examples)
    for domain in DOMAINS:
        own = {i: e for i, e in examples.items() if e.corpus == "qmsum" and e.domain == domain}
        splits = _splits(own, fold)
        found |= {i: replace(example, split=splits[example.meeting]) for i, example in own.items()}
    return found


def series_of(meeting: str) -> str:
    """What is never dealt apart: an AMI series, which is named by all but a meeting's last letter; else the meeting.

    >>> series_of("ES2002a"), series_of("Bed003"), series_of("covid_1")
    ('ES2002', 'Bed003', 'covid_1')
    """
    return meeting[:-1] if AMI.fullmatch(meeting) else meeting


def _splits(examples: Mapping[str, Example], fold: Fold) -> dict[str, Split]:
    """Meeting -> its split, of one domain."""
    others = [example for example in examples.values() if example.split != "test"]
    tested = _halves(others)[HALVES.index(fold)]
    rest = [example for example in examples.values() if example.meeting not in tested]
    validated = _held_out(rest)
    splits: dict[str, Split] = {}
    for example in examples.values():
        held: Split = "val" if example.meeting in validated else "train"
        splits[example.meeting] = "test" if example.meeting in tested else held
    return splits


def _halves(examples: Sequence[Example]) -> tuple[set[str], set[str]]:
    """Meetings in two halves: series in hash order, each to the half that has fewer meetings so far."""
    halves: tuple[set[str], set[str]] = (set(), set())
    for meetings in _series(examples):
        min(halves, key=len).update(meetings)
    return halves


def _held_out(examples: Sequence[Example]) -> set[str]:
    """Meetings of whole series, in hash order, until they have enough examples to choose a round by.

    Of a corpus as small as the sample, a third at most: something has to be left to train on.
    """
    held: set[str] = set()
    for meetings in _series(examples):
        count = sum(example.meeting in held for example in examples)
        if count >= VALIDATION_EXAMPLES or count >= len(examples) / 3:
            break
        held |= meetings
    return held


def _series(examples: Sequence[Example]) -> list[set[str]]:
    """Each series' meetings, in hash order."""
    found: dict[str, set[str]] = {}
    for example in examples:
        found.setdefault(series_of(example.meeting), set()).add(example.meeting)
    return [found[name] for name in hash_order(list(found), salt="folds/")]
