"""Effects as rows of a page and of comparisons.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.intervals import Interval
from pipeline.report.figures.forest import terms_text
from pipeline.report.page import gain_digits, gain_text, p_value, signed
from pipeline.tasks.task import LOSS, Metric

SMALL = 0.002
"""An interval narrower than this is shown with one digit more."""


def digits_of(effect: Effect, metric: Metric) -> int:
    """Digits behind the point of an effect: more where its interval is narrow."""
    found = effect.interval
    narrow = found is not None and not found.is_point and found.high - found.low < SMALL
    return gain_digits(metric) + narrow


def effect_text(effect: Effect, metric: Metric) -> str:
    """As in `+0.51 (+0.16 … +0.85)`; empty where a run is missing."""
    return "" if effect.interval is None else gain_text(effect.interval, digits_of(effect, metric))


def effect_row(effect: Effect, metric: Metric, seeds: Mapping[int, str]) -> dict[str, str]:
    """The texts that the page shows of an effect.

    Args:
        seeds: seed -> its name on the page.
    """
    digits = digits_of(effect, metric)
    paper = "" if effect.paper is None else signed(effect.paper, digits)
    if effect.comparison.band:
        paper = " … ".join(signed(end, digits) for end in effect.comparison.band)
    notes = ["the runs disagree: their own spread gives the interval"] if effect.disagree else []
    if len(effect.by_seed) == 1 < len(seeds):
        notes.append(f"run {seeds[next(iter(effect.by_seed))]} alone")
    if effect.at_equal_length is not None:
        notes.append(f"at equal length {gain_text(effect.at_equal_length, digits)}")
    return {
        "name": effect.comparison.name,
        "statement": effect.comparison.statement,
        "terms": terms_text(effect.comparison.terms),
        "metric": metric.title,
        "effect": effect_text(effect, metric) or "not run",
        "notes": "; ".join(notes),
        "p": p_value(effect.p_holm) if effect.p_holm is not None else p_value(effect.p) if effect.p is not None else "",
        "corrected": "" if effect.p_holm is not None or effect.p is None else "uncorrected",
        "by_seed": ", ".join(f"{seeds.get(s, s)} {signed(v, digits)}" for s, v in effect.by_seed.items())
        if len(effect.by_seed) > 1
        else "",
        "paper": paper,
    }


def effect_records(effects: Sequence[Effect]) -> list[dict[str, Any]]:
    """Rows of comparisons.csv, to six digits; of a run that is missing, no effect."""
    seeds = sorted({seed for one in effects for seed in one.by_seed})
    return [
        {
            "name": one.comparison.name,
            "metric": one.metric,
            "terms": terms_text(one.comparison.terms),
            "family": one.comparison.family,
            **_ends(one.interval, "effect", "low", "high"),
            "p": _rounded(one.p),
            "p_holm": _rounded(one.p_holm),
            "p_seeds": _rounded(one.p_seeds),
            **_ends(one.at_equal_length, "equal_length", "equal_length_low", "equal_length_high"),
            "groups": one.groups or None,
            "paper": one.paper,
            **{f"seed_{seed}": _rounded(one.by_seed.get(seed)) for seed in seeds},
        }
        for one in effects
    ]


def sensitivity_records(found: Sequence[tuple[str, Sequence[Effect]]]) -> list[dict[str, Any]]:
    """Rows of sensitivities.csv."""
    columns = ("name", "metric", "effect", "low", "high", "p")
    return [
        {"changed": title} | {column: row[column] for column in columns}
        for title, effects in found
        for row in effect_records(effects)
    ]


def sensitivity_lines(
    found: Sequence[tuple[str, Sequence[Effect]]], metrics: Mapping[str, Metric], family: str
) -> list[tuple[str, list[str]]]:
    """(What is changed, a text a metric): the effects of the first family, in the order of the table."""
    lines = []
    for title, effects in found:
        own = [one for one in effects if one.comparison.family == family]
        texts = [
            f"{metric.title}: "
            + "; ".join(f"{terms_text(one.comparison.terms)} {effect_text(one, metric)}" for one in shown)
            for name, metric in metrics.items()
            if (shown := [one for one in own if one.metric == name])
        ]
        lines.append((title, texts))
    return lines


def answer_of(effects: Sequence[Effect], metrics: Mapping[str, Metric]) -> str:
    """The first comparison in one sentence with its numbers; empty while it has not been run."""
    first = [one for one in effects if one.comparison == effects[0].comparison and one.interval] if effects else []
    if not first:
        return ""
    numbers = [
        f"{effect_text(one, metrics[one.metric])} {_unit(metrics[one.metric])}"
        + (f" (the paper: {signed(one.paper, 2)})" if one.paper is not None else "")
        for one in first
        if one.metric in metrics
    ]
    comparison = first[0].comparison
    return f"{comparison.statement}? {terms_text(comparison.terms)}: {', '.join(numbers)}."


def _unit(metric: Metric) -> str:
    return f"{metric.unit} of {metric.title}" if metric.name == LOSS.name else metric.title


def _ends(interval: Interval | None, *names: str) -> dict[str, float | None]:
    """Value, low and high by these names."""
    values = (None,) * 3 if interval is None else (interval.value, *interval.ends)
    return dict(zip(names, map(_rounded, values), strict=True))


def _rounded(value: float | None) -> float | None:
    return None if value is None or value != value else round(value, 6)
