"""Folds of QMSum: its official split, and two more that together test every other meeting once.

Queries of one meeting are not independent, so federations are compared by meeting, and the official test has only 35.
A hash deals the other 197 into two halves, never an AMI series (four meetings of one group) into both. A fold tests on
one half, validates on a few meetings of the rest, and trains on what is left.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import Split
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.qmsum import DOMAINS

Fold = Literal["official", "first", "second"]
FOLDS: tuple[Fold, ...] = get_args(Fold)
HALVES: tuple[Fold, Fold] = ("first", "second")
AMI = re.compile(r"[EIT]S\d{4}[a-d]")
"""A meeting's name in AMI: the second of series 2002 in Edinburgh is ES2002b."""
VALIDATION_EXAMPLES = 40  # the fewest validation examples of a client in the first and second fold


def refolded(examples: Mapping[str, Conversation], fold: Fold) -> dict[str, Conversation]:
    """The examples by id, those of QMSum's domains in the splits of a fold and all others unchanged."""
    found = dict(examples)
    for domain in DOMAINS if fold != "official" else ():
        own = {i: e for i, e in examples.items() if e.corpus == "qmsum" and e.domain == domain}
        splits = _splits(list(own.values()), fold)
        found |= {i: replace(example, split=splits[example.meeting]) for i, example in own.items()}
    return found


def series_of(meeting: str) -> str:
    """The name of a meeting's series: of an AMI meeting all but the last letter, of another its own name.

    >>> series_of("ES2002a"), series_of("Bed003"), series_of("covid_1")
    ('ES2002', 'Bed003', 'covid_1')
    """
    return meeting[:-1] if AMI.fullmatch(meeting) else meeting


def _splits(examples: Sequence[Conversation], fold: Fold) -> dict[str, Split]:
    """Meeting -> its split, of one domain.

    Series go in hash order: each to the half that has fewer meetings so far, and then to validation until that has
    enough examples to choose a round by, or about a third, so that a corpus as small as the sample can train.
    """
    halves: tuple[set[str], set[str]] = (set(), set())
    for meetings in _series([example for example in examples if example.split != "test"]):
        min(halves, key=len).update(meetings)
    splits: dict[str, Split] = dict.fromkeys(halves[HALVES.index(fold)], "test")
    rest = [example for example in examples if example.meeting not in splits]
    for meetings in _series(rest):
        count = sum(splits.get(example.meeting) == "val" for example in rest)
        enough = count >= min(VALIDATION_EXAMPLES, len(rest) / 3)
        splits |= dict.fromkeys(meetings, "train" if enough else "val")
    return splits


def _series(examples: Sequence[Conversation]) -> list[set[str]]:
    """Each series' meetings, in hash order."""
    found: dict[str, set[str]] = {}
    for example in examples:
        found.setdefault(series_of(example.meeting), set()).add(example.meeting)
    return [found[name] for name in hash_order(list(found), salt="folds/")]
