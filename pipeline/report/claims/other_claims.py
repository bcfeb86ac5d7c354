"""The paper's claims that are more, or other, than one run against another: the best τ or client, raters, words.

Each function puts a claim of one `kind` to the figures that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import NormalDist

from pipeline.evaluation.agreement import outcomes_of
from pipeline.evaluation.intervals import Clusters, Interval, bootstrap
from pipeline.evaluation.scores import Scored, clusters_of
from pipeline.report.claims.claim import TOLERANCE, Claim, Converged, Judged, Share, Verdict, by_margins, judge, not_run

PARITY = 0.1
"""Losses over wins, as a share of all ratings, that count as nothing."""


def best_threshold(
    claim: Claim,
    run: str,
    others: Mapping[str, float],
    scored: Mapping[str, Sequence[Scored]],
    converged: Converged,
    samples: int,
) -> Judged:
    """Whether a run is above the best of others.

    Args:
        run: the one with the threshold that the claim is about.
        others: run -> its validation loss, by which the best is chosen.
    """
    best = min((name for name in others if name in scored), key=others.__getitem__, default="")
    remark = f"against {best}, the best of the others on validation" if best else ""
    return judge(replace(claim, ours=run, theirs=best).remarked(remark), scored, converged, samples)


def best_client(claim: Claim, scored: Mapping[str, Sequence[Scored]], converged: Converged, samples: int) -> Judged:
    """Whether a client's score is above every other client's of the run; their examples are not paired.

    One other that is surely above it decides; else the one with the least lower end does: above it means above all.
    """
    (client,) = claim.clients
    clusters = _averages(scored.get(claim.ours, ()))
    if client not in clusters or len(clusters) < 2:
        return not_run(claim)
    others = {name: _between(clusters, client, name, samples) for name in clusters if name != client}
    hardest = min(others, key=lambda name: others[name].high)
    if others[hardest].high >= 0:
        hardest = min(others, key=lambda name: others[name].low)
    interval = others[hardest]
    verdict = by_margins("above", interval.low, interval.high, None)
    remarked = claim.remarked(f"against {hardest}, the other that it is least surely above")
    return Judged(remarked, interval, verdict, converged(claim.ours, ()))


def alike_clients(claim: Claim, scored: Mapping[str, Sequence[Scored]], converged: Converged, samples: int) -> Judged:
    """Whether all clients' scores of a run are within half a point of each other.

    Each pair has an interval that is right for all of them at once, by Bonferroni's rule. The pair that reaches
    farthest from 0 is shown; where one is surely more than half a point apart, the one that is so most surely.
    """
    clusters = _averages(scored.get(claim.ours, ()))
    if len(clusters) < 2:
        return not_run(claim)
    order = sorted(clusters, key=lambda name: clusters[name].ratio())
    pairs = list(combinations(reversed(order), 2))
    width = NormalDist().inv_cdf(1 - 0.025 / len(pairs))
    wide = {pair: _widened(_between(clusters, *pair, samples), width) for pair in pairs}
    shown = max(wide, key=lambda pair: wide[pair].low)
    if wide[shown].low <= TOLERANCE:
        shown = max(wide, key=lambda pair: max(wide[pair].high, -wide[pair].low))
    interval = wide[shown]
    picked = f"{shown[0]} less {shown[1]}, with an interval for all {len(pairs)} pairs at once"
    verdict = by_margins(claim.rule, interval.low, interval.high, None)
    return Judged(claim.remarked(picked), interval, verdict, converged(claim.ours, ()))


def _widened(interval: Interval, width: float) -> Interval:
    """Its ends so many standard errors from its value."""
    reach = width * interval.standard_error
    return replace(interval, low=interval.value - reach, high=interval.value + reach)


def _averages(rows: Sequence[Scored]) -> dict[str, Clusters]:
    return clusters_of([row for row in rows if "average" in row.values], "average")


def _between(clusters: Mapping[str, Clusters], one: str, other: str, samples: int) -> Interval:
    """The score of one client less that of another."""
    # `bootstrap` gives the mean over clients: twice the one and minus twice the other is their difference.
    return bootstrap({one: _scaled(clusters[one], 2.0), other: _scaled(clusters[other], -2.0)}, samples)


def _scaled(clusters: Clusters, factor: float) -> Clusters:
    return Clusters(clusters.numerator * factor, clusters.denominator, clusters.names)


def preferred(
    claim: Claim, rows: Sequence[Mapping[str, str]], method: str, converged: Converged, samples: int
) -> Judged:
    """Whether raters preferred a run's summaries to another's, by the wins less the losses of all ratings.

    Args:
        claim: whose rule is "above", or "comparable": not more than `PARITY` below.
        rows: of ratings.csv.
        method: the other's, as ratings name it.
    """
    if not any(row["against"] == method for row in rows):
        return not_run(claim)
    found = outcomes_of(rows, method, samples).preference
    verdict = by_margins(claim.rule, found.low, found.high, claim.effect, PARITY)
    return Judged(claim, found, verdict, converged(claim.ours, ()) and converged(claim.theirs, ()))


def share_of_words(claim: Claim, rows: Sequence[Mapping[str, str]], converged: Converged) -> Judged:
    """A share a client: held if each one's interval is above the claim's `least`, not if one's is below.

    Nothing is told of a client that has none of the words of which it would be a share.

    Args:
        rows: of word_shares.csv, which names the run that they are of.
    """
    if not rows:
        return not_run(claim)
    own = [row for row in rows if row["share"] == claim.metric]
    shares = tuple(Share(row["client"], float(row["value"]), float(row["low"]), float(row["high"])) for row in own)
    remarks = [f"of {', '.join(share.client for share in shares)}"] if shares else []
    base = " / ".join(f"{float(row['value']):.0%}" for row in rows if row["share"] == "content")
    if claim.metric == "content_given_distilled" and base:
        remarks.append(f"of all words {base} are nouns, names and main verbs")
    known = {share.client for share in shares}
    without = list(dict.fromkeys(row["client"] for row in rows if row["client"] not in known))
    if without:
        remarks.append(f"of {', '.join(without)} there are no such words")
    held = not without and all(share.low >= claim.least for share in shares)
    missed = any(share.high < claim.least for share in shares)
    verdict: Verdict = "held" if held else "did not hold" if missed else "cannot tell"
    run = rows[0]["run"]
    return Judged(replace(claim, ours=run).remarked(*remarks), None, verdict, converged(run, ()), shares)
