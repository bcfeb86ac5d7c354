"""FedNLP's claims, and the words they are judged by.

They were fixed before any result, but for two rules that were made stricter since, and changed no word: a claim that
two runs are alike asks every seed, and one with several rivals has to hold against each.

    held         the interval lies above 0 (of a claim that two are alike: within its ends), and every seed lies there
    did not      its upper end is under half of the paper's effect, 0 where it prints none (alike: wholly outside)
    cannot tell  else, and whatever was made at fewer than three seeds

Holm's adjustment runs over the claims of one task, those that were not run among them: else fewer results would be
judged more kindly. A claim whose adjusted p is above 0.05 has not held.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from pydantic import Field, field_validator

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.significance import holm
from pipeline.evaluation.text_scores import BySeed, difference, roughness
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Record

Word = Literal["held", "did not", "cannot tell", "not run"]
ALPHA, SEEDS = 0.05, 3
Curves = Mapping[int, Sequence[float]]
"""Seed -> development loss, a round each."""


class TextClaim(Record):
    """Runs with their coefficients, and what they are compared by.

    Several `terms` are several rivals: the claim holds if it does against each of those whose runs were made, and does
    not if it does not against one. `effect`: the paper's, in points. `within`: of a claim that two are alike, the ends
    between which they are. `at`: the one scale at which it is asked.
    """

    number: int
    task: str
    text: str
    terms: list[dict[str, float]] = Field(min_length=1)
    effect: float | None = None
    within: tuple[float, float] | None = None
    over: Literal["test", "first third", "end", "roughness"] = "test"
    at: Literal["laptop", "full"] | None = None

    @property
    def tested(self) -> bool:
        """Whether it is judged by a p."""
        return self.over == "test" and self.within is None

    @field_validator("terms", mode="before")
    @classmethod
    def _one_rival(cls, terms: Any) -> Any:
        return [terms] if isinstance(terms, dict) else terms


class Falling(Record):
    """That a figure of federations falls from each setting to the next."""

    number: int
    text: str
    figure: str
    settings: list[str] = Field(min_length=2)


def falls(values: Sequence[Sequence[float]]) -> Word:
    """
    Args:
        values: of each seed, a figure a setting.

    >>> falls([[3.0, 2.0, 1.0], [5.0, 4.0, 1.0]]), falls([[3.0, 2.0], [2.0, 3.0]])
    ('held', 'did not')
    """
    steps = [later < earlier for own in values for earlier, later in itertools.pairwise(own)]
    return "held" if steps and all(steps) else "did not" if steps else "not run"


@dataclass(frozen=True)
class TextVerdict:
    """A claim, the combination that it is about, at all seeds and at each, and the word.

    `rivals`: of those that the claim names, how many could be asked; the combination is of the one that decided.
    """

    claim: TextClaim
    word: Word
    value: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    by_seed: tuple[float, ...] = ()
    rivals: int = 0


def word_of(value: Interval, claim: TextClaim, by_seed: Sequence[float], p_holm: float) -> Word:
    """
    >>> claim = TextClaim(number=1, task="t", text="", terms=[{"a": 1, "b": -1}], effect=2.0)
    >>> word_of(Interval(1.0, 0.5, 1.5), claim, [0.9, 1.1, 1.0], 0.01)
    'held'
    >>> word_of(Interval(0.1, -0.5, 0.7), claim, [0.1, 0.2, 0.0], 0.7)
    'did not'
    """
    if len(by_seed) < SEEDS:
        return "cannot tell"
    if claim.within is not None:
        low, high = claim.within
        inside = low <= value.low and value.high <= high and all(low <= one <= high for one in by_seed)
        return "held" if inside else "did not" if _refuted(value, claim) else "cannot tell"
    if value.low > 0 and p_holm <= ALPHA and all(one > 0 for one in by_seed):
        return "held"
    return "did not" if _refuted(value, claim) else "cannot tell"


def _refuted(value: Interval, claim: TextClaim) -> bool:
    if claim.within is not None:
        return value.low > claim.within[1] or value.high < claim.within[0]
    return value.high < (claim.effect or 0.0) / 2


def judge(
    claims: Sequence[TextClaim],
    scored: Mapping[str, BySeed],
    curves: Mapping[str, Curves],
    metrics: Mapping[str, Metric],
    samples: int,
) -> list[TextVerdict]:
    """Every claim.

    Args:
        scored: run -> its rows; `curves`: run -> its development losses.
        metrics: task -> its first one.
    """
    found = {claim.number: _against_each(claim, scored, curves, metrics, samples) for claim in claims}
    adjusted: dict[int, float] = {}
    for task in {claim.task for claim in claims}:
        family = [claim.number for claim in claims if claim.task == task and claim.tested]
        asked = [number for number in family if found[number]]
        # That all of several claims hold is as sure as the least sure of them.
        p_values = [max(one.p or 0.0 for one in found[number]) for number in asked]
        adjusted |= zip(asked, holm(p_values, len(family)), strict=True)
    return [_together(claim, found[claim.number], adjusted.get(claim.number)) for claim in claims]


def _together(claim: TextClaim, rivals: Sequence[TextVerdict], p_holm: float | None) -> TextVerdict:
    """The verdict over a claim's rivals; what it shows is the least of those that decided."""
    if p_holm is not None:
        rivals = [_adjusted(one, p_holm) for one in rivals]
    for word in ("did not", "cannot tell", "held"):
        if deciding := [one for one in rivals if one.word == word]:
            shown = min(deciding, key=lambda one: one.value.value if one.value else 0.0)
            return replace(shown, rivals=len(rivals))
    return TextVerdict(claim, "not run")


def _adjusted(one: TextVerdict, p_holm: float) -> TextVerdict:
    assert one.value is not None
    return replace(one, p_holm=p_holm, word=word_of(one.value, one.claim, one.by_seed, p_holm))


def _against_each(
    claim: TextClaim,
    scored: Mapping[str, BySeed],
    curves: Mapping[str, Curves],
    metrics: Mapping[str, Metric],
    samples: int,
) -> list[TextVerdict]:
    """Of every rival whose runs were made, at a seed in common at least."""
    made: Mapping[str, Mapping[int, Any]] = scored if claim.over == "test" else curves
    return [_against(claim, terms, scored, curves, metrics, samples) for terms in claim.terms if _shared(made, terms)]


def _against(
    claim: TextClaim,
    terms: Mapping[str, float],
    scored: Mapping[str, BySeed],
    curves: Mapping[str, Curves],
    metrics: Mapping[str, Metric],
    samples: int,
) -> TextVerdict:
    """The claim against one rival, at the seeds at which all of its runs were made."""
    if claim.over == "test":
        seeds = _shared(scored, terms)
        rows = [(weight, {seed: scored[run][seed] for seed in seeds}) for run, weight in terms.items()]
        value, p, alone = difference(rows, metrics[claim.task], samples)
        return TextVerdict(claim, word_of(value, claim, alone, p), value, p, None, tuple(alone))
    seeds = _shared(curves, terms)
    alone = [sum(w * _of_curve(curves[run][seed], claim.over) for run, w in terms.items()) for seed in seeds]
    whole = len(seeds) >= SEEDS
    word: Word = "held" if whole and min(alone) > 0 else "did not" if whole and max(alone) <= 0 else "cannot tell"
    point = Interval(fmean(alone), float("nan"), float("nan"))
    return TextVerdict(claim, word, point, by_seed=tuple(alone))


def _shared(made: Mapping[str, Mapping[int, Any]], runs: Iterable[str]) -> list[int]:
    """The seeds at which all of these runs were made; none where one was not."""
    return sorted(set.intersection(*(set(made.get(run, ())) for run in runs)))


def _of_curve(curve: Sequence[float], over: str) -> float:
    if over == "roughness":
        return roughness(curve)
    return curve[-1] if over == "end" else fmean(curve[: max(1, len(curve) // 3)])
