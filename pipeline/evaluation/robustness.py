"""What a verdict would be if the meetings were looked at in another way: none of it decides anything.

Each check takes the examples' scores of all runs and gives them back changed, for the claims to be judged again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pipeline.clients.folds import series_of
from pipeline.evaluation.claims import Judged, Word, gains_of, is_in_every_run, word_of
from pipeline.evaluation.intervals import Clusters, interval_of, sign_flip
from pipeline.evaluation.scores import Scored

Runs = Mapping[str, Sequence[Scored]]
ICSI = re.compile(r"B[a-z]{2}(?=\d{3}$)")


def in_series(runs: Runs) -> dict[str, list[Scored]]:
    """AMI's four meetings of one group as one: they share speakers and a product."""
    return _renamed(runs, series_of)


def in_icsi_series_too(runs: Runs) -> dict[str, list[Scored]]:
    """The same, and all meetings of one of ICSI's groups as one, as Bmr001 and Bmr031: they share speakers."""
    return _renamed(runs, lambda meeting: found[0] if (found := ICSI.match(meeting)) else series_of(meeting))


def _renamed(runs: Runs, series: Callable[[str], str]) -> dict[str, list[Scored]]:
    return {name: [replace(row, meeting=series(row.meeting)) for row in rows] for name, rows in runs.items()}


def without(runs: Runs, meetings: Collection[str]) -> dict[str, list[Scored]]:
    """Some meetings left out, as those on which anything was chosen."""
    return {name: [row for row in rows if row.meeting not in meetings] for name, rows in runs.items()}


@dataclass(frozen=True)
class LeftOut:
    """A claim with each meeting left out in turn: the least and the largest gain, and how often which word came."""

    least: float
    largest: float
    words: Mapping[Word, int]


def leave_one_out(one: Judged, runs: Runs, by_seed: Mapping[int, Runs], samples: int) -> LeftOut | None:
    """With p raised as much as Holm's adjustment raised the claim's, and without the gate; None if it was not run.

    Args:
        by_seed: what `runs` has of each seed alone, since a gain has to be one in every run.
    """
    clients = gains_of(one.claim, one.metric, runs)
    if clients is None:
        return None
    alone = [own for seed in by_seed.values() if (own := gains_of(one.claim, one.metric, seed))]
    raised = one.p_holm / one.p if one.p and one.p_holm else 1.0
    values, words = [], Counter[Word]()
    for name in sorted({name for client in clients.values() for name in client.names}):
        fewer = _without_meeting(clients, name)
        if fewer is None:
            continue
        gain = interval_of(fewer, samples)
        values.append(gain.value)
        word = word_of(gain, one.effect, raised * sign_flip(fewer, samples), one.claim.margin)
        left = (_without_meeting(seed, name) for seed in alone)
        by_run = [fmean(client.ratio() for client in own.values()) for own in left if own]
        words[word if is_in_every_run(one.claim, word, by_run) else "undecided"] += 1
    return LeftOut(min(values), max(values), words)


def _without_meeting(clients: Mapping[str, Clusters], name: str) -> dict[str, Clusters] | None:
    """None, where it is the only one of a client."""
    fewer = {place: _lacking(client, name) for place, client in clients.items()}
    return fewer if all(len(client.names) for client in fewer.values()) else None


def _lacking(client: Clusters, meeting: str) -> Clusters:
    kept = [i for i, name in enumerate(client.names) if name != meeting]
    return Clusters(client.numerator[kept], client.denominator[kept], tuple(client.names[i] for i in kept))
