"""The paper's claims that are more, or other, than one run against another: the best τ or client, raters, words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

from pipeline.claims.claim import Claim, Converged, Judged, Share, Verdict, by_margins, judge
from pipeline.claims.section import ADDED
from pipeline.evaluation.agreement import outcomes_of
from pipeline.evaluation.intervals import Clusters, Interval, bootstrap
from pipeline.evaluation.scores import Scored, clusters_of

NEARLY_ALL = 0.9
PAPERS_SHARE = 0.74
PARITY = 0.1
"""Losses over wins, as a share of all ratings, that count as nothing."""


def best_of(
    claim: str,
    source: str,
    run: str,
    others: Mapping[str, float],
    scored: Mapping[str, Sequence[Scored]],
    converged: Converged,
    samples: int,
) -> Judged:
    """Whether a run is above the best of others.

    Args:
        others: run -> its validation loss, by which the best is chosen.
    """
    best = min((name for name in others if name in scored), key=others.__getitem__, default="")
    remark = f"against {best}, the best of the others on validation" if best else ""
    return judge(Claim(claim, source, run, best, remark=remark), scored, converged, samples)


def best_client(
    claim: str,
    source: str,
    run: str,
    client: str,
    scored: Mapping[str, Sequence[Scored]],
    *,
    converged: bool,
    samples: int,
) -> Judged:
    """Whether a client's score is above that of the best other client of the run; their examples are not paired."""
    known = [row for row in scored.get(run, ()) if "average" in row.values]
    clusters = clusters_of(known, "average")
    if client not in clusters or len(clusters) < 2:
        return Judged(Claim(claim, source, run, ""), None, "not run", converged=True)
    other = max((name for name in clusters if name != client), key=lambda name: clusters[name].ratio())
    interval = _between(clusters, client, other, samples)
    verdict = by_margins("above", interval.low, interval.high, None)
    return Judged(
        Claim(claim, source, run, run, remark=f"against {other}, the best other"), interval, verdict, converged
    )


def alike(
    claim: str, source: str, run: str, scored: Mapping[str, Sequence[Scored]], *, converged: bool, samples: int
) -> Judged:
    """Whether the client with the highest score of a run is within half a point of the one with the lowest.

    The scores themselves pick the two: the interval is one for all pairs at once, by Bonferroni's rule.
    """
    clusters = clusters_of([row for row in scored.get(run, ()) if "average" in row.values], "average")
    if len(clusters) < 2:
        return Judged(Claim(claim, source, run, ""), None, "not run", converged=True)
    order = sorted(clusters, key=lambda name: clusters[name].ratio())
    pair = _between(clusters, order[-1], order[0], samples)
    pairs = len(order) * (len(order) - 1) // 2
    reach = NormalDist().inv_cdf(1 - 0.025 / pairs) * pair.standard_error
    interval = replace(pair, low=pair.value - reach, high=pair.value + reach)
    remark = (
        f"{order[-1]}, the highest, less {order[0]}, the lowest, with an interval for all {pairs} pairs at once; "
        f"alike: within half a point; {ADDED}"
    )
    verdict = by_margins("little", interval.low, interval.high, None)
    return Judged(Claim(claim, source, run, run, "little", remark=remark), interval, verdict, converged)


def _between(clusters: Mapping[str, Clusters], one: str, other: str, samples: int) -> Interval:
    """The score of one client less that of another."""
    # `bootstrap` gives the mean over clients: twice the one and minus twice the other is their difference.
    return bootstrap({one: _scaled(clusters[one], 2.0), other: _scaled(clusters[other], -2.0)}, samples)


def _scaled(clusters: Clusters, factor: float) -> Clusters:
    return Clusters(clusters.numerator * factor, clusters.denominator, clusters.names)


def preferred(
    rows: Sequence[Mapping[str, str]], claim: Claim, method: str, converged: Converged, samples: int
) -> Judged:
    """Whether raters preferred a run's summaries to another's, by the wins less the losses of all ratings.

    Args:
        rows: of ratings.csv.
        claim: whose rule is "above", or "comparable": not more than `PARITY` below.
        method: the other's, as ratings name it.
    """
    if not any(row["against"] == method for row in rows):
        return Judged(claim, None, "not run", converged=True)
    found = outcomes_of(rows, method, samples).preference
    verdict = by_margins(claim.rule, found.low, found.high, claim.effect, PARITY)
    return Judged(claim, found, verdict, converged(claim.ours, ()) and converged(claim.theirs, ()))


def distilled_words(rows: Sequence[Mapping[str, str]], run: str, *, converged: bool) -> list[Judged]:
    """The two claims about parts of speech, from the rows of word_shares.csv; the least favourable client decides."""
    base = " / ".join(f"{float(row['value']):.0%}" for row in rows if row["share"] == "content")
    of_all = f"; of all words {base} are nouns, names and main verbs" if base else ""
    return [
        _counted(
            "What is distilled is nearly all nouns and verbs",
            run,
            [row for row in rows if row["share"] == "content_given_distilled"],
            NEARLY_ALL,
            f"held from {NEARLY_ALL:.0%}{of_all}",
            converged=converged,
        ),
        _counted(
            f"Determiners and pronouns are {PAPERS_SHARE:.0%} of what is not distilled",
            run,
            [row for row in rows if row["share"] == "closed_given_not_distilled"],
            PAPERS_SHARE / 2,
            f"held from half of it, {PAPERS_SHARE / 2:.0%}",
            converged=converged,
        ),
    ]


def _counted(
    text: str, run: str, rows: Sequence[Mapping[str, str]], least: float, remark: str, *, converged: bool
) -> Judged:
    """A share a client: held if each one's interval is above `least`, not if one's is below."""
    shares = tuple(Share(row["client"], float(row["value"]), float(row["low"]), float(row["high"])) for row in rows)
    whose = f"of {', '.join(share.client for share in shares)}; " if shares else ""
    claim = Claim(text, "Fig. 11", run, "", metric="share", remark=f"{whose}{remark}")
    if not rows:
        return Judged(claim, None, "not run", converged=True)
    held = all(share.low >= least for share in shares)
    missed = any(share.high < least for share in shares)
    verdict: Verdict = "held" if held else "did not hold" if missed else "cannot tell"
    return Judged(claim, None, verdict, converged, shares)
