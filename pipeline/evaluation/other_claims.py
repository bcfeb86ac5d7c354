"""The paper's claims that are no difference between two runs: the best τ or client, which words are distilled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pipeline.analysis.words import CONTENT
from pipeline.evaluation.claims import Claim, Converged, Judged, Verdict, by_margins, judge
from pipeline.evaluation.intervals import Clusters, bootstrap
from pipeline.evaluation.scores import Scored, clusters_of

DETERMINERS_AND_PRONOUNS = ("DET", "PRON")
NEARLY_ALL = 0.9
PAPERS_SHARE = 0.74


def mean_average(rows: Sequence[Scored]) -> float:
    """Average ROUGE, mean over clients."""
    return fmean(c.ratio() for c in clusters_of(rows, "average").values())


def best_of(
    claim: str,
    source: str,
    run: str,
    others: Sequence[str],
    scored: Mapping[str, Sequence[Scored]],
    converged: Converged,
    samples: int,
) -> Judged:
    """Whether a run is above the best of others: the best on these very examples, which favours the others."""
    known = [name for name in others if name in scored and "average" in scored[name][0].values]
    best = max(known, key=lambda name: mean_average(scored[name]), default="")
    remark = f"against {best}, the best of the others" if best else ""
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
    # `bootstrap` gives the mean over clients: twice the one and minus twice the other is their difference.
    pair = {client: _scaled(clusters[client], 2.0), other: _scaled(clusters[other], -2.0)}
    interval = bootstrap(pair, samples)
    verdict = by_margins("above", interval.low, interval.high, None)
    return Judged(
        Claim(claim, source, run, run, remark=f"against {other}, the best other"), interval, verdict, converged
    )


def _scaled(clusters: Clusters, factor: float) -> Clusters:
    return Clusters(clusters.numerator * factor, clusters.denominator, clusters.names)


def distilled_words(rows: Sequence[Mapping[str, str]], run: str) -> list[Judged]:
    """The two claims about parts of speech, from the rows of pos_kd.csv; the least favourable client decides."""
    clients = list(dict.fromkeys(row["client"] for row in rows))
    nouns = [_share(rows, client, "pos_given_distilled", CONTENT) for client in clients]
    base = [_share(rows, client, "base_rate", CONTENT) for client in clients]
    closed = [_share(rows, client, "pos_given_not_distilled", DETERMINERS_AND_PRONOUNS) for client in clients]
    return [
        _counted(
            "What is distilled is nearly all nouns and verbs",
            run,
            nouns,
            NEARLY_ALL,
            f"held from {NEARLY_ALL:.0%}; of all words {_percents(base)} are nouns, names and main verbs",
        ),
        _counted(
            f"Determiners and pronouns are {PAPERS_SHARE:.0%} of what is not distilled",
            run,
            closed,
            PAPERS_SHARE / 2,
            f"held from half of it, {PAPERS_SHARE / 2:.0%}",
        ),
    ]


def _share(rows: Sequence[Mapping[str, str]], client: str, column: str, parts: Sequence[str]) -> float:
    return sum(float(row[column]) for row in rows if row["client"] == client and row["pos"] in parts)


def _counted(text: str, run: str, shares: Sequence[float], least: float, remark: str) -> Judged:
    claim = Claim(text, "Fig. 11", run, "", remark=remark)
    if not shares:
        return Judged(claim, None, "not run", converged=True)
    verdict: Verdict = "held" if min(shares) >= least else "did not hold"
    return Judged(claim, None, verdict, converged=True, shown=_percents(shares))


def _percents(shares: Sequence[float]) -> str:
    return " / ".join(f"{100 * share:.0f}%" for share in shares)
