"""What the page on the main table says first: the answer, and the verdict on every claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.evaluation.claims import SUPPORTED, Judged, by_place
from pipeline.report.claim_rows import COLOURS
from pipeline.tasks.task import LOSS, Metric


def answer_of(
    claims: Sequence[Judged], metrics: Sequence[Metric], converging: Sequence[Judged] = ()
) -> dict[str, Any] | None:
    """Where nothing can be decided (`shut`: the endpoint, its gate); and our method against federated averaging.

    The latter is claim 1 (`first`), with its `endpoint` and the `gate` there.

    None while neither is known: claim 1 is not run, and no gate is.

    Args:
        converging: the same claims, where a run that did not converge has one in its place that did. A gate that is
            told of it stands third beside its endpoint; None if it is about the same runs.
    """
    first = next((one for one in claims if one.claim.number == 1 and one.gain is not None), None)
    gates = {one.metric: one for one in claims if one.claim.gate and one.gain is not None}
    named = {metric.name: metric for metric in metrics}
    elsewhere = {one.metric: one for one in converging if one.claim.gate and one.gain is not None}
    shut = [
        (named[one.metric], one, _if_other(one, elsewhere.get(one.metric)))
        for one in gates.values()
        if one.word not in SUPPORTED
    ]
    if first is None and not shut:
        return None
    return {
        "first": first,
        "endpoint": first and named[first.metric],
        "gate": first and gates.get(first.metric),
        "shut": shut,
    }


def verdict_rows(
    claims: Sequence[Judged], metrics: Sequence[Metric], converging: Sequence[Judged] = ()
) -> list[dict[str, Any]]:
    """A row a claim: its words on the first metric and in loss, then those of `converging`; None if not judged."""
    columns = [(by_place(own), name) for own in (claims, converging) if own for name in (metrics[0].name, LOSS.name)]
    texts = {one.claim.number: one.claim.text for one in claims}
    return [
        {"number": number, "text": text, "cells": [_cell(own.get((number, name))) for own, name in columns]}
        for number, text in texts.items()
    ]


def _cell(one: Judged | None) -> dict[str, str] | None:
    return {"word": one.word, "colour": COLOURS[one.word]} if one else None


def _if_other(usual: Judged, other: Judged | None) -> Judged | None:
    return other if other and other.claim != usual.claim else None
