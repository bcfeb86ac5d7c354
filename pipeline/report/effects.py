"""Effects as rows of a page and of comparisons.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.intervals import columns
from pipeline.report.figures.forest import label, terms_text
from pipeline.report.page import gain_digits, gain_text, p_value, signed
from pipeline.tasks.task import LOSS, Metric
from pipeline.workspace.record import Json

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
        seeds: every seed -> its name on the page.
    """
    digits, alone = digits_of(effect, metric), effect.by_seed
    paper = "" if effect.paper is None else signed(effect.paper, digits)
    if effect.comparison.band:
        paper = " … ".join(signed(end, digits) for end in effect.comparison.band)
    notes = []
    if effect.pooled is not None:
        pooled = gain_text(effect.pooled, digits)
        notes.append(f"the runs disagree: their own spread gives the interval; pooled {pooled}")
    if 0 < len(alone) < len(seeds):
        notes.append(f"of {' and '.join(seeds[seed] for seed in alone)} alone")
    if effect.at_equal_length is not None:
        notes.append(f"at equal length {gain_text(effect.at_equal_length, digits)}")
    return {
        "name": effect.comparison.name,
        "statement": effect.comparison.statement,
        "terms": label(effect.comparison),
        "metric": metric.title,
        "effect": effect_text(effect, metric) or "not run",
        "notes": "; ".join(notes),
        "p": p_text(effect),
        "by_seed": ", ".join(f"{seeds[s]} {signed(v, digits)}" for s, v in alone.items()) if len(alone) > 1 else "",
        "p_seeds": "" if effect.p_seeds is None else p_value(effect.p_seeds),
        "paper": paper,
    }


def p_text(effect: Effect) -> str:
    """Holm's p; of a comparison without a family, which is marked, its own; empty where there is none."""
    p = effect.p if effect.p_holm is None else effect.p_holm
    return "" if p is None else p_value(p)


def effect_records(effects: Sequence[Effect]) -> list[Json]:
    """Rows of comparisons.csv, to six digits; of a run that is missing, no effect."""
    seeds = sorted({seed for one in effects for seed in one.by_seed})
    return [
        {
            "name": one.comparison.name,
            "metric": one.metric,
            "terms": terms_text(one.comparison.terms),
            "family": one.comparison.family,
            **columns(one.interval, "effect", "low", "high"),
            "p": _rounded(one.p),
            "p_holm": _rounded(one.p_holm),
            "p_seeds": _rounded(one.p_seeds),
            **columns(one.pooled, "pooled", "pooled_low", "pooled_high"),
            **columns(one.at_equal_length, "equal_length", "equal_length_low", "equal_length_high"),
            "groups": one.groups or None,
            "paper": one.paper,
            **{f"seed_{seed}": _rounded(one.by_seed.get(seed)) for seed in seeds},
        }
        for one in effects
    ]


def sensitivity_records(found: Sequence[tuple[str, Sequence[Effect]]]) -> list[Json]:
    """Rows of sensitivities.csv."""
    shown = ("name", "metric", "effect", "low", "high", "p", "p_holm", "p_seeds", "pooled", "pooled_low", "pooled_high")
    return [
        {"changed": title} | {column: row[column] for column in shown}
        for title, effects in found
        for row in effect_records(effects)
    ]


def sensitivity_rows(
    effects: Sequence[Effect], found: Sequence[tuple[str, Sequence[Effect]]], metrics: Mapping[str, Metric]
) -> list[Json]:
    """A row an effect that some sensitivity has: its contrast, its metric, and under each change its effect and p."""
    changed = [{(one.comparison.name, one.metric): one for one in own} for _, own in found]
    rows = []
    for effect in effects:
        metric, own = metrics[effect.metric], [one.get((effect.comparison.name, effect.metric)) for one in changed]
        cells = [_changed(one, metric) if one else {"effect": "–", "note": ""} for one in own]
        if any(own):
            rows.append({"terms": label(effect.comparison), "metric": metric.title, "cells": cells})
    return rows


def _changed(effect: Effect, metric: Metric) -> dict[str, str]:
    notes = [f"p {p_text(effect)}"] if p_text(effect) else []
    notes += ["the runs disagree"] if effect.disagree else []
    return {"effect": effect_text(effect, metric), "note": "; ".join(notes)}


def answer_of(effects: Sequence[Effect], metrics: Mapping[str, Metric]) -> str:
    """The first comparison in one sentence with its numbers; empty while it has not been run."""
    first = [one for one in effects if one.comparison == effects[0].comparison and one.interval]
    if not first:
        return ""
    numbers = [
        f"{effect_text(one, metrics[one.metric])} {_unit(metrics[one.metric])}"
        + (f" (the paper: {signed(one.paper, 2)})" if one.paper is not None else "")
        for one in first
    ]
    comparison = first[0].comparison
    return f"“{comparison.statement}”: {terms_text(comparison.terms)} is {', '.join(numbers)}."


def _unit(metric: Metric) -> str:
    return f"{metric.unit} of {metric.title}" if metric.name == LOSS.name else metric.title


def _rounded(value: float | None) -> float | None:
    return None if value is None or value != value else round(value, 6)
