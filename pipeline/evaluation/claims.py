"""Claims and the words they are judged by, fixed before any of the runs that they judge was trained.

A claim says that one run is better than another, on an endpoint (average ROUGE, test loss), by an effect. In ROUGE that
is the paper's, where it compares the two; in loss it is ours. A gain is ours less theirs, turned so that more is
better. With its 95% interval and Holm's p:

    supported    p at most 0.05, the lower end above 0, and a gain in each of three runs;
                 *smaller* if the upper end is below half of the effect
    excluded     the lower end at most 0 and the upper end below half of the effect
    undecided    else; before there are three runs; whatever was trained without converging; and every other claim where
                 the gate, that pooling gains, is not supported

"No worse than theirs less a margin" is supported above the margin and excluded below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

from pydantic import Field

from pipeline.evaluation.intervals import Clusters, Interval, interval_of, sign_flip
from pipeline.evaluation.scores import LOSS, Scored, by_client, gains
from pipeline.evaluation.significance import holm
from pipeline.workspace.record import Record

Word = Literal["supported", "supported, smaller", "excluded", "undecided", "not run"]
ALPHA = 0.05
GAINS = "gains"
"""The family of the claims that our method is better than another."""
RUNS = 3
"""Trainings behind a verdict, each with other examples, another first adapter and other batches."""
SUPPORTED: tuple[Word, ...] = ("supported", "supported, smaller")


class Claim(Record):
    """Two runs by their names in params.yaml, and the effect on each endpoint that is judged.

    `gate`: the others are undecided on an endpoint on which it is not supported. `family`: Holm's adjustment runs over
    the claims of one family. `margin`: of a claim that ours is no worse than theirs less so much.
    """

    number: int
    text: str
    ours: str
    theirs: str
    effects: dict[str, float] = Field(min_length=1)
    family: str = ""
    gate: bool = False
    margin: float | None = Field(default=None, gt=0)


@dataclass(frozen=True)
class Judged:
    """A claim on one endpoint: the gain, its p, the word, and why there is no other.

    `level`: what Holm's adjustment asks of p, where the claims of the family that are supported by theirs are set
    aside. `meetings`: on how many the gain was seen. `by_client`: client -> seed -> its gain. `shared`: what other
    claims rest on the same adapters, and at which clients.
    """

    claim: Claim
    metric: str
    gain: Interval | None
    p: float | None
    word: Word
    why: str = ""
    p_holm: float | None = None
    level: float = ALPHA
    shared: tuple[str, ...] = ()
    by_client: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    meetings: int = 0

    @property
    def by_run(self) -> dict[int, float]:
        """Seed -> the gain at it, mean over clients."""
        clients = list(self.by_client.values())
        return {seed: fmean(own[seed] for own in clients) for seed in clients[0]} if clients else {}

    @property
    def effect(self) -> float:
        return self.claim.effects[self.metric]

    @property
    def meetings_to_show(self) -> int | None:
        """How many meetings would show the gain that was seen, in four cases of five, if they are like these.

        With n meetings it is n (visible / gain)². Of a claim with a margin the gain is what lies above less the
        margin. None if there is no gain.
        """
        if self.gain is None or math.isnan(self.gain.visible):
            return None
        above = self.gain.value + (self.claim.margin or 0.0)
        return math.ceil(self.meetings * (self.gain.visible_at(self.level) / above) ** 2) if above > 0 else None


def word_of(gain: Interval, effect: float, p: float, margin: float | None = None) -> Word:
    """The word that an interval and its p give.

    >>> from pipeline.evaluation.intervals import Interval
    >>> word_of(Interval(0.10, -0.09, 0.29, 0.1), effect=0.93, p=0.3)
    'excluded'
    >>> word_of(Interval(0.40, -0.10, 0.90, 0.2), effect=0.93, p=0.1)
    'undecided'
    """
    if margin is not None:
        return "supported" if gain.low > -margin else "excluded" if gain.high < -margin else "undecided"
    if gain.low > 0 and p <= ALPHA:
        return "supported, smaller" if gain.high < effect / 2 else "supported"
    return "excluded" if gain.low <= 0 and gain.high < effect / 2 else "undecided"


def judge(
    claims: Sequence[Claim],
    scored: Mapping[str, Sequence[Scored]],
    by_seed: Mapping[int, Mapping[str, Sequence[Scored]]],
    converged: Callable[[str], bool],
    samples: int,
    runs: int = RUNS,
) -> list[Judged]:
    """Every claim on every endpoint that it names, in order of number.

    Args:
        scored: run -> its examples' scores; a run that is not there was not run.
        by_seed: the same of each seed alone.
        converged: whether a run's training came to its end.
        runs: how many seeds there are to be before anything is decided.
    """
    shared = _shared(claims, scored)
    found: list[Judged] = []
    for claim in claims:
        for metric in claim.effects:
            clusters = gains_of(claim, metric, scored)
            if clusters is None:
                found.append(Judged(claim, metric, None, None, "not run"))
                continue
            gain, p = interval_of(clusters, samples), sign_flip(clusters, samples)
            alone = {seed: own for seed, runs_of in by_seed.items() if (own := gains_of(claim, metric, runs_of))}
            by_client = {client: {seed: own[client].ratio() for seed, own in alone.items()} for client in clusters}
            meetings = len({name for client in clusters.values() for name in client.names})
            own_shared = shared[claim.number]
            found.append(
                Judged(claim, metric, gain, p, "undecided", shared=own_shared, by_client=by_client, meetings=meetings)
            )
    return _gated([_worded(one, converged, runs) for one in _adjusted(found)])


def by_place(judged: Iterable[Judged]) -> dict[tuple[int, str], Judged]:
    """(Number of the claim, endpoint) -> how it was judged there."""
    return {(one.claim.number, one.metric): one for one in judged}


def of_other_runs(claims: Iterable[Claim], instead: Mapping[str, str]) -> list[Claim]:
    """The same claims about other runs: run -> the one in its place."""
    return [
        claim.model_copy(
            update={"ours": instead.get(claim.ours, claim.ours), "theirs": instead.get(claim.theirs, claim.theirs)}
        )
        for claim in claims
    ]


def rivals(claims: Iterable[Claim], ours: str) -> set[str]:
    """The runs over which one run's gains were claimed beforehand: one family of Holm's."""
    return {claim.theirs for claim in claims if claim.family == GAINS and claim.ours == ours}


def gains_of(claim: Claim, metric: str, scored: Mapping[str, Sequence[Scored]]) -> dict[str, Clusters] | None:
    """Client -> ours less theirs by meeting, more being better; None where a run or its scores are missing."""
    if claim.ours not in scored or claim.theirs not in scored:
        return None
    return gains(scored[claim.ours], scored[claim.theirs], metric)


def _adjusted(found: Sequence[Judged]) -> list[Judged]:
    """With Holm's p over each family on each endpoint; a claim of no family keeps its own.

    A claim that was not run counts in its family all the same: else fewer results would be judged more kindly.
    """
    adjusted = list(found)
    families = {(one.claim.family, one.metric) for one in found}
    for family, metric in families:
        own = [i for i, one in enumerate(found) if (one.claim.family, one.metric) == (family, metric)]
        places = [i for i in own if found[i].p is not None]
        p_values = [found[i].p or 0.0 for i in places]
        raised, level = p_values, ALPHA
        if family:
            raised = holm(p_values, len(own))
            level = ALPHA / max(1, len(own) - sum(p <= ALPHA for p in raised))
        for i, p in zip(places, raised, strict=True):
            adjusted[i] = replace(found[i], p_holm=p, level=level)
    return adjusted


def _worded(one: Judged, converged: Callable[[str], bool], runs: int) -> Judged:
    if one.gain is None or one.p_holm is None:
        return one
    word = word_of(one.gain, one.effect, one.p_holm, one.claim.margin)
    open_ended = [run for run in (one.claim.ours, one.claim.theirs) if not converged(run)]
    reasons = {
        f"not converged: {', '.join(open_ended)}": bool(open_ended),
        f"{len(one.by_run)} of {runs} runs": len(one.by_run) < runs,
        "not ahead in every run": not is_in_every_run(one.claim, word, one.by_run.values()),
    }
    why = "; ".join(reason for reason, holds in reasons.items() if holds)
    return replace(one, why=why) if why else replace(one, word=word)


def is_in_every_run(claim: Claim, word: Word, by_run: Iterable[float]) -> bool:
    """Whether a word may stand: where it is that ours is better, each run has to say so."""
    return word not in SUPPORTED or claim.margin is not None or all(gain > 0 for gain in by_run)


def _gated(found: Sequence[Judged]) -> list[Judged]:
    """Unless pooling all data is seen to gain, no federated claim can be tested: told beside a claim's own reason."""
    shut = {one.metric for one in found if one.claim.gate and one.word not in SUPPORTED}
    return [
        replace(one, word="undecided", why="; ".join(filter(None, (one.why, "the gate is not supported"))))
        if one.metric in shut and not one.claim.gate and one.word != "not run"
        else one
        for one in found
    ]


def _shared(claims: Iterable[Claim], scored: Mapping[str, Sequence[Scored]]) -> dict[int, tuple[str, ...]]:
    """Claim -> other claims that compare the same two adapters at some clients, so that they are no second evidence."""
    pairs = {
        claim.number: {
            client: (_fingerprint(scored[claim.ours], client), _fingerprint(scored[claim.theirs], client))
            for client in by_client(scored[claim.ours])
        }
        for claim in claims
        if claim.ours in scored and claim.theirs in scored
    }
    found: dict[int, tuple[str, ...]] = {}
    for number, own in pairs.items():
        told = []
        for other, theirs in pairs.items():
            same = [client for client in own if own[client] == theirs.get(client)]
            if other != number and same:
                told.append(f"claim {other} at {', '.join(same)}")
        found[number] = tuple(told)
    return found


def _fingerprint(rows: Sequence[Scored], client: str) -> tuple[float, ...]:
    """Equal losses of every reference, to the last bit: one adapter."""
    return tuple(row.values[LOSS] for row in rows if row.client == client)
