"""Every section's claims put to our numbers: those that compare two runs, and those of another kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from pipeline.claims.claim import Claim, Converged, Judged, judge
from pipeline.claims.other_claims import alike, best_client, best_of, distilled_words, preferred
from pipeline.claims.section import Section
from pipeline.evaluation.paper_scores import OURS
from pipeline.evaluation.scores import MEAN
from pipeline.history import History, best_validation_loss, client_rounds, has_converged, rounds_taken
from pipeline.results import Full, Results, knob_of, weight_of_all

SELECTIVE = "fedselectkd"
"""The run of the main table that Fig. 11, Table VIII and the rating sheets are about."""
BALANCED = "fedselectkd-balanced"
PAPERS_TAU = 5.0
SCALED, NEAR = "kd-scaled", 0.05
"""The control that distils everything at a smaller λ, and how near that λ has to be to what it should be."""
ALIKE = "fedselectkd-iid"
EQUAL_ROUNDS, EQUAL_CLIENT_ROUNDS = "at equal rounds", "at equal client-rounds"
"""What a claim's text ends with, if it is one only of runs that took as many."""


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

    def put(claim: Claim) -> Judged:
        if claim.metric != "preference":
            return judge(claim, scored, converged, samples)
        if claim.ours not in results.rows or claim.theirs not in results.rows:
            return Judged(claim, None, "not run", converged=True)
        return preferred(ratings, claim, results.rows[claim.theirs][0].kind, converged, samples)

    judged = {section.study: [put(claim) for claim in section.claims] for section in sections}
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
    judged["iid"].append(
        alike(
            "All clients do alike on IID data",
            "Fig. 6",
            ALIKE,
            scored,
            converged=ALIKE not in scored or converged(ALIKE, ()),
            samples=samples,
        )
    )
    judged["words"] += _words(shares, results.histories)
    judged["mechanism"] = [_at_equal_budget(one, results) for one in judged["mechanism"]]
    judged["sampling"] = [_in_equal_rounds(one, results) for one in judged["sampling"]]
    return {study: [_before_aggregation(one, results) for one in found] for study, found in judged.items()}


def _before_aggregation(one: Judged, results: Results) -> Judged:
    """Beside a claim of AdaFedSelectKD over AdaFedAvg the latter's clients before aggregation, in test loss."""
    claim = one.claim
    if one.interval is None or claim.rule == "little" or claim.metric not in ("average", "loss"):
        return one
    ours, theirs = results.rows[claim.ours][0], results.rows[claim.theirs][0]
    if (ours.kind, theirs.kind) != (OURS, "AdaFedAvg"):
        return one
    mine, other = results.metrics[claim.ours], results.metrics[claim.theirs]
    clients = [c for c in mine if c != MEAN and c in other and (not claim.clients or c in claim.clients)]
    if any("local_loss" not in other[client] for client in clients):
        return one
    return replace(one, before=fmean(mine[client]["loss"] - other[client]["local_loss"] for client in clients))


def _in_equal_rounds(one: Judged, results: Results) -> Judged:
    """Nothing can be told of runs compared at equal rounds, or client-rounds, if they stopped early at unequal ones."""
    claim = one.claim
    if one.interval is None or not claim.text.endswith((EQUAL_ROUNDS, EQUAL_CLIENT_ROUNDS)):
        return one
    pair = [results.histories[run] for run in (claim.ours, claim.theirs)]
    if claim.text.endswith(EQUAL_ROUNDS):
        (mine, others), unit, most = (rounds_taken(history) for history in pair), "rounds", 0.0
    else:
        (mine, others), unit = (client_rounds(history) for history in pair), "client-rounds"
        most = len({row.client for row in pair[0]}) / 2  # whole rounds of all clients cannot come nearer
    if all(abs(count - others[seed]) <= most for seed, count in mine.items()):
        return one
    took = " and ".join("/".join(map(str, counts.values())) for counts in (mine, others))
    remark = f"{claim.remark}; they took {took} {unit}".removeprefix("; ")
    return replace(one, claim=replace(claim, remark=remark), by_interval="cannot tell")


def _at_equal_budget(one: Judged, results: Results) -> Judged:
    """No verdict on the control that distils everything, unless its λ is the share that it is to make up for."""
    if one.claim.theirs != SCALED or one.interval is None:
        return one
    wanted = weight_of_all(results, one.claim.ours)
    if abs(knob_of(results, SCALED, "lambda") - wanted) <= NEAR * wanted:
        return one
    remark = f"{one.claim.remark}; its λ is not {wanted:.3f}"
    return Judged(replace(one.claim, remark=remark), None, "not run", converged=True)


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
    taus = {name: tau for name, tau in taus.items() if not math.isnan(tau)}
    five = next((name for name, tau in taus.items() if tau == PAPERS_TAU), "")
    others = {n: best_validation_loss(results.histories[n]) for n, tau in taus.items() if tau != PAPERS_TAU}
    return best_of("τ = 5 is the best threshold", "Fig. 4", five, others, results.scored, converged, samples)


def _words(shares: Sequence[Mapping[str, str]], histories: Mapping[str, History]) -> list[Judged]:
    run = shares[0]["run"] if shares else SELECTIVE
    return distilled_words(shares, run, converged=not shares or has_converged(histories[run]))


def _convergence(histories: Mapping[str, History]) -> Converged:
    return lambda run, clients: has_converged(histories[run], clients)
