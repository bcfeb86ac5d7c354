"""Every section's claims put to our numbers: those that compare two runs, and those of another kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluation.claims import Converged, Judged, judge
from pipeline.evaluation.other_claims import best_client, best_of, distilled_words, preferred
from pipeline.figures.section import Section
from pipeline.results import Full, History, Results, best_validation_loss, has_converged, knob_of

SELECTIVE = "fedselectkd"
"""The run of the main table that Fig. 11, Table VIII and the rating sheets are about."""
BALANCED = "fedselectkd-balanced"
PAPERS_TAU = 5.0


def verdicts_of(
    sections: Sequence[Section],
    results: Results,
    studies: Mapping[str, Sequence[str]],
    shares: Sequence[Mapping[str, str]],
    ratings: Sequence[Mapping[str, str]],
    samples: int,
) -> dict[str, list[Judged]]:
    """Study -> its claims.

    Args:
        shares: rows of word_shares.csv.
        ratings: rows of ratings.csv; none, as long as nobody has rated.
    """
    scored, converged = results.scored, _convergence(results.histories)
    judged = {s.study: [judge(claim, scored, converged, samples) for claim in s.claims] for s in sections}
    judged["tau"].append(_best_threshold(results, studies.get("tau", ()), converged, samples))
    judged["noniid"].append(
        best_client(
            "Committee does best when clients are balanced",
            "Fig. 7",
            BALANCED,
            "Committee",
            scored,
            converged=BALANCED not in scored or converged(BALANCED, ()),
            samples=samples,
        )
    )
    judged["words"] += _words(shares, results.histories)
    judged["human"] += [
        preferred(ratings, SELECTIVE, run, method, converged)
        for run, method in (("fedavg", "AdaFedAvg"), ("fedkd", "AdaFedKD"))
    ]
    return judged


def full_verdicts(
    sections: Sequence[Section],
    full: Full,
    samples: int,
) -> dict[str, Judged]:
    """The main table's claims put to what `make repro-full` left, by their text; empty if it left nothing."""
    claims = next(section.claims for section in sections if section.study == "main")
    converged = _convergence(full.histories)
    judged = [judge(claim, full.scored, converged, samples) for claim in claims] + _words(full.shares, full.histories)
    return {one.claim.text: one for one in judged if one.by_interval != "not run"}


def _best_threshold(results: Results, runs: Sequence[str], converged: Converged, samples: int) -> Judged:
    taus = {name: knob_of(results, name, "tau") for name in runs if name in results.scored}
    five = next((name for name, tau in taus.items() if tau == PAPERS_TAU), "")
    others = {n: best_validation_loss(results.histories[n]) for n, tau in taus.items() if tau != PAPERS_TAU}
    return best_of("τ = 5 is the best threshold", "Fig. 4", five, others, results.scored, converged, samples)


def _words(shares: Sequence[Mapping[str, str]], histories: Mapping[str, History]) -> list[Judged]:
    converged = SELECTIVE not in histories or has_converged(histories[SELECTIVE])
    return distilled_words(shares, SELECTIVE, converged=converged)


def _convergence(histories: Mapping[str, History]) -> Converged:
    return lambda run, clients: has_converged(histories[run], clients)
