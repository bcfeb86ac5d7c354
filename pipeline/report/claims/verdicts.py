"""Every section's claims put to our numbers, a function a kind of claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from pipeline.evaluation.paper_scores import OURS
from pipeline.evaluation.scores import MEAN, Scored
from pipeline.federated.history import History, best_validation_loss, client_rounds, has_converged, rounds_taken
from pipeline.report.claims.claim import Claim, Converged, Judged, Kind, judge, not_run
from pipeline.report.claims.other_claims import alike_clients, best_client, best_threshold, preferred, share_of_words
from pipeline.report.claims.section import Section
from pipeline.runs.results import Full, Results, knob_of, weight_of_all

PAPERS_TAU = 5.0
SCALED, NEAR = "kd-scaled", 0.05
"""The control that distils everything at a smaller λ, and how near that λ has to be to what it should be."""
DISTILLING = (OURS, "AdaFedKD", "AdaFedHardKD")
OF_THE_MAIN_TABLE = ("main", "words")
"""Sections whose claims are put to all of QMSum, too."""

Rows = Sequence[Mapping[str, str]]
Judges = dict[Kind, Callable[[Claim], Judged]]


def verdicts_of(
    sections: Sequence[Section],
    results: Results,
    studies: Mapping[str, Sequence[str]],
    shares: Rows,
    ratings: Rows,
    samples: int,
) -> dict[str, list[Judged]]:
    """Study -> its claims.

    Args:
        shares: rows of word_shares.csv.
        ratings: rows of ratings.csv; none, as long as nobody has rated.
    """
    scored, converged = results.scored, _convergence(results.histories)

    def rated(claim: Claim) -> Judged:
        if claim.ours not in results.rows or claim.theirs not in results.rows:
            return not_run(claim)
        return preferred(claim, ratings, results.rows[claim.theirs][0].kind, converged, samples)

    def best_tau(claim: Claim) -> Judged:
        run, others = _thresholds(results, studies.get("tau", ()))
        return best_threshold(claim, run, others, scored, converged, samples)

    judges = _judges(scored, converged, shares, samples) | {"raters": rated, "best threshold": best_tau}
    return {
        section.study: [_beside(judges[claim.kind](claim), results) for claim in section.claims] for section in sections
    }


def full_verdicts(sections: Sequence[Section], full: Full, samples: int) -> dict[str, Judged]:
    """The main table's claims put to what `make repro-full` left, by their text; empty if it left nothing."""
    judges = _judges(full.scored, _convergence(full.histories), full.shares, samples)
    claims = [claim for section in sections if section.study in OF_THE_MAIN_TABLE for claim in section.claims]
    judged = [judges[claim.kind](claim) for claim in claims]
    return {one.claim.text: one for one in judged if one.by_interval != "not run"}


def _judges(scored: Mapping[str, Sequence[Scored]], converged: Converged, shares: Rows, samples: int) -> Judges:
    """Who judges which kind of claim, of those that need scores alone."""
    return {
        "two runs": lambda claim: judge(claim, scored, converged, samples),
        "best client": lambda claim: best_client(claim, scored, converged, samples),
        "alike clients": lambda claim: alike_clients(claim, scored, converged, samples),
        "words": lambda claim: share_of_words(claim, shares, converged),
    }


def _thresholds(results: Results, runs: Sequence[str]) -> tuple[str, dict[str, float]]:
    """(The run with the paper's threshold, or nothing; the others' validation losses)."""
    taus = {name: knob_of(results, name, "tau") for name in runs if name in results.scored}
    taus = {name: tau for name, tau in taus.items() if not math.isnan(tau)}
    papers = next((name for name, tau in taus.items() if tau == PAPERS_TAU), "")
    return papers, {n: best_validation_loss(results.histories[n]) for n, tau in taus.items() if tau != PAPERS_TAU}


def _beside(one: Judged, results: Results) -> Judged:
    """A claim with what else there is to know before its verdict is believed."""
    if one.interval is None:
        return one
    return _before_aggregation(_in_equal_rounds(_at_equal_budget(one, results), results), results)


def _before_aggregation(one: Judged, results: Results) -> Judged:
    """Beside a claim of a method that distils over AdaFedAvg the latter's clients before aggregation, in test loss."""
    claim = one.claim
    if claim.kind != "two runs" or claim.rule == "little":
        return one
    ours, theirs = results.rows[claim.ours][0], results.rows[claim.theirs][0]
    if ours.method not in DISTILLING or theirs.kind != "AdaFedAvg":
        return one
    mine, other = results.metrics[claim.ours], results.metrics[claim.theirs]
    clients = [c for c in mine if c != MEAN and c in other and (not claim.clients or c in claim.clients)]
    if any("local_loss" not in other[client] for client in clients):
        return one
    return replace(one, before=fmean(mine[client]["loss"] - other[client]["local_loss"] for client in clients))


def _in_equal_rounds(one: Judged, results: Results) -> Judged:
    """Nothing can be told of runs compared at equal rounds, or client-rounds, if they stopped early at unequal ones."""
    claim = one.claim
    if claim.equal is None:
        return one
    pair = [results.histories[run] for run in (claim.ours, claim.theirs)]
    if claim.equal == "rounds":
        (mine, others), most = (rounds_taken(history) for history in pair), 0.0
    else:
        mine, others = (client_rounds(history) for history in pair)
        most = len({row.client for row in pair[0]}) / 2  # whole rounds of all clients cannot come nearer
    if all(abs(count - others[seed]) <= most for seed, count in mine.items()):
        return one
    took = " and ".join("/".join(map(str, counts.values())) for counts in (mine, others))
    return replace(one, withheld=f"they took {took} {claim.equal}")


def _at_equal_budget(one: Judged, results: Results) -> Judged:
    """No verdict on the control that distils everything, unless its λ is the share that it is to make up for."""
    if one.claim.theirs != SCALED:
        return one
    wanted = weight_of_all(results, one.claim.ours)
    if abs(knob_of(results, SCALED, "lambda") - wanted) <= NEAR * wanted:
        return one
    return replace(one, withheld=f"its λ is not {wanted:.3f}")


def _convergence(histories: Mapping[str, History]) -> Converged:
    return lambda run, clients: has_converged(histories[run], clients)
