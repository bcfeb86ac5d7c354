"""What the page on the main table says first: the answer, and the verdict on every claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.evaluation.claims import SUPPORTED, Judged
from pipeline.evaluation.scores import LOSS
from pipeline.report.claim_rows import COLOURS
from pipeline.tasks.task import Metric


def answer_of(claims: Sequence[Judged], metrics: Sequence[Metric]) -> dict[str, Any] | None:
    """Where nothing can be decided (the endpoint, its gate), and our method against federated averaging.

    None while neither is known: claim 1 is not run, and no gate is.
    """
    first = next((one for one in claims if one.claim.number == 1 and one.gain is not None), None)
    gates = {one.metric: one for one in claims if one.claim.gate and one.gain is not None}
    named = {metric.name: metric for metric in metrics}
    shut = [(named[one.metric], one) for one in gates.values() if one.word not in SUPPORTED]
    if first is None and not shut:
        return None
    return {"first": first, "gate": first and gates.get(first.metric), "shut": shut}


def verdict_rows(claims: Sequence[Judged], metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """A row a claim: its words on the first metric and in loss; None where it is not judged."""
    found: dict[int, dict[str, Any]] = {}
    for one in claims:
        row = found.setdefault(one.claim.number, {"number": one.claim.number, "text": one.claim.text, "words": {}})
        row["words"][one.metric] = {"word": one.word, "colour": COLOURS[one.word]}
    return [row | {"cells": [row["words"].get(name) for name in (metrics[0].name, LOSS)]} for row in found.values()]
