"""A judged claim as a row of a page, and as a record of a metrics file."""

from __future__ import annotations

from typing import Any

from pipeline.evaluation.claims import Judged, Word
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import LOSS
from pipeline.report.page import p_value, signed

COLOURS: dict[Word, str] = {
    "supported": "held",
    "supported, smaller": "held",
    "excluded": "not",
    "undecided": "open",
    "not run": "none",
}


def claim_row(one: Judged) -> dict[str, Any]:
    """What the page says of a claim on one endpoint, as text."""
    digits, gain = (3 if one.metric == LOSS else 2), one.gain
    return {
        "number": one.claim.number,
        "text": one.claim.text,
        "endpoint": "test loss" if one.metric == LOSS else "ROUGE",
        "effect": signed(one.effect, digits),
        "gain": "–" if gain is None else signed(gain.value, digits),
        "by_run": ", ".join(signed(own, digits) for own in one.by_run) if len(one.by_run) > 1 else "",
        "interval": "" if gain is None else _span(gain, digits),
        "p": "" if one.p_holm is None or one.claim.margin is not None else p_value(one.p_holm),
        "visible": "" if gain is None else f"{gain.visible:.{digits}f}",
        "word": one.word,
        "colour": COLOURS[one.word],
        "why": one.why,
        "shared": "; ".join(one.shared),
    }


def _span(gain: Interval, digits: int) -> str:
    return "none" if gain.is_point else f"{signed(gain.low, digits)} … {signed(gain.high, digits)}"


def claim_record(one: Judged) -> dict[str, Any]:
    """Everything that a claim was judged by, to four digits."""
    return {
        **one.claim.model_dump(include={"number", "text", "ours", "theirs", "family", "margin"}),
        "metric": one.metric,
        "effect": one.effect,
        "gain": None if one.gain is None else one.gain.rounded(4),
        "visible": None if one.gain is None else round(one.gain.visible, 4),
        "by_run": [round(own, 4) for own in one.by_run],
        "p": one.p,
        "p_holm": one.p_holm,
        "word": one.word,
        "why": one.why,
        "shared": list(one.shared),
    }
