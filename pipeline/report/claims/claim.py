"""What the paper claims, put to our numbers: an interval and a verdict a claim, by margins fixed beforehand.

A difference is *held* if its interval's lower end is above 0, however small it is beside the paper's; else it *did not
hold* if the upper end is below half of the paper's effect, else we *cannot tell at this scale*. Two rules differ:
"comparable to" holds above −0.5, "little gained" within ±0.5. What words and raters have to reach stands with their
claims. Nothing can be told of a run whose best round is its last: it might have gone on improving.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pipeline.evaluation.intervals import Interval, bootstrap
from pipeline.evaluation.scores import Scored, clusters_of, differences

Rule = Literal["above", "below", "comparable", "little"]
Verdict = Literal["held", "did not hold", "cannot tell", "not run"]
Kind = Literal["two runs", "best threshold", "best client", "alike clients", "words", "raters"]
Equal = Literal["rounds", "client-rounds"]
Metric = Literal["average", "loss", "preference", "content_given_distilled", "closed_given_not_distilled"]
TOLERANCE = 0.5
"""Average ROUGE that counts as nothing: for "comparable to" and "little gained"."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, most often about two runs.

    `metric`: the average ROUGE; the test loss (nats a token), where lower is better; raters' preference, wins less
    losses as a share of all ratings; or a share of words, by its name in word_shares.csv. `effect`: the paper's own
    difference or share, where it has numbers. `clients`: those it is about; empty: all that both have. `source`: its
    table, figure or section. `kind`: who is put beside whom; `theirs` is empty where the results pick it. `equal`: what
    two runs must have taken as many of. `least`: a share from which a claim of words holds.
    """

    text: str
    source: str
    ours: str
    theirs: str
    rule: Rule = "above"
    metric: Metric = "average"
    effect: float | None = None
    clients: tuple[str, ...] = ()
    remark: str = ""
    kind: Kind = "two runs"
    equal: Equal | None = None
    least: float = 0.0

    def __post_init__(self) -> None:
        if self.metric == "loss" and self.rule in ("comparable", "little"):
            raise ValueError(f"{self.text}: no margin in nats was fixed for {self.rule}")

    def remarked(self, *more: str) -> Claim:
        """The same with more remarks."""
        return replace(self, remark="; ".join(part for part in (self.remark, *more) if part))


@dataclass(frozen=True)
class Share:
    """A client's share with its 95% interval."""

    client: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Judged:
    """A claim with our difference (ours − theirs), the verdict that its interval gives, and why there may be none.

    `shares`: a share of words a client, where the claim is of no difference of two runs. `loss`: beside a difference in
    ROUGE, that in test loss, our other endpoint. `same`: the clients whose adapter is one and the same in both runs, as
    every loss is, to the last bit. `before`: the difference in test loss from the other run's clients before
    aggregation, where the claim is of a method that distils over AdaFedAvg: personalization alone is no distillation.
    `withheld`: why there is no verdict, whatever the interval says.
    """

    claim: Claim
    interval: Interval | None
    by_interval: Verdict
    converged: bool
    shares: tuple[Share, ...] = ()
    loss: Interval | None = None
    same: tuple[str, ...] = ()
    before: float | None = None
    withheld: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.by_interval == "not run" or (self.converged and not self.withheld):
            return self.by_interval
        return "cannot tell"


def not_run(claim: Claim) -> Judged:
    """What is said of a claim whose runs are not there."""
    return Judged(claim, None, "not run", converged=True)


def by_margins(rule: Rule, low: float, high: float, effect: float | None, tolerance: float = TOLERANCE) -> Verdict:
    """The verdict that an interval gives.

    Args:
        effect: the paper's difference, of the sign that the claim says; None where it has no number.
        tolerance: what counts as nothing, in the unit of the interval.
    """
    if rule == "below":
        return by_margins("above", -high, -low, None if effect is None else -effect)
    if rule == "comparable":
        return "held" if low > -tolerance else "did not hold" if high < -tolerance else "cannot tell"
    if rule == "little":
        inside = low > -tolerance and high < tolerance
        outside = low > tolerance or high < -tolerance
        return "held" if inside else "did not hold" if outside else "cannot tell"
    if low > 0:
        return "held"
    return "did not hold" if high < (effect or 0.0) / 2 else "cannot tell"


Converged = Callable[[str, Sequence[str]], bool]
"""(run, clients; all, if none is named) -> whether their best rounds came before their last."""


def judge(claim: Claim, scored: Mapping[str, Sequence[Scored]], converged: Converged, samples: int) -> Judged:
    """Put a claim to the runs that it names, on the clients that both have.

    Args:
        scored: run -> its examples' scores; a run that is not there was not run.
        converged: of which runs and clients more training might still change the row.
    """
    if claim.ours not in scored or claim.theirs not in scored:
        return not_run(claim)
    rows = differences(scored[claim.ours], scored[claim.theirs])
    if claim.clients:
        rows = [row for row in rows if row.client in claim.clients]
    if not rows or claim.metric not in rows[0].values:
        return not_run(claim)
    interval = bootstrap(clusters_of(rows, claim.metric), samples)
    clients = list(dict.fromkeys(row.client for row in rows))
    return Judged(
        claim,
        interval,
        by_margins(claim.rule, interval.low, interval.high, claim.effect),
        converged(claim.ours, clients) and converged(claim.theirs, clients),
        loss=None if claim.metric == "loss" else bootstrap(clusters_of(rows, "loss"), samples),
        same=tuple(client for client in clients if not any(r.values["loss"] for r in rows if r.client == client)),
    )
