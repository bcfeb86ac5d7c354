"""A judged claim as a row of a page, and as a record of a metrics file."""

from __future__ import annotations

from collections.abc import Sequence
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
    digits, gain = digits_of(one), one.gain
    return {
        "number": one.claim.number,
        "text": one.claim.text,
        "endpoint": _endpoint(one),
        "effect": signed(one.effect, digits),
        "gain": "–" if gain is None else signed(gain.value, digits),
        "by_run": _listed(one.by_run, digits) if len(one.by_run) > 1 else "",
        "interval": "" if gain is None else _span(gain, digits),
        "p": "" if one.p_holm is None or one.claim.margin is not None else p_value(one.p_holm),
        "error": "" if gain is None else f"{gain.standard_error:.{digits}f}",
        "visible": "" if gain is None else f"{gain.visible:.{digits}f}",
        "meetings": _meetings(one),
        "word": one.word,
        "colour": COLOURS[one.word],
        "why": one.why,
        "shared": "; ".join(one.shared),
    }


def client_rows(judged: Sequence[Judged]) -> tuple[list[str], list[list[str]]]:
    """(Head, a row a claim and endpoint that was run): each client's gain at each seed."""
    made = [one for one in judged if one.by_client]
    clients = list(dict.fromkeys(client for one in made for client in one.by_client))
    rows = [
        [
            f"{one.claim.number}: {one.claim.text}",
            _endpoint(one),
            *(_listed(one.by_client[client], digits_of(one)) for client in clients),
        ]
        for one in made
    ]
    return ["claim", "endpoint", *clients], rows


def digits_of(one: Judged) -> int:
    """How many of a gain are told."""
    return 3 if one.metric == LOSS else 2


def _meetings(one: Judged) -> str:
    """On how many meetings, and of an undecided claim how many would decide it."""
    needed = one.meetings_to_decide
    if one.word != "undecided" or needed is None:
        return str(one.meetings or "")
    return f"{one.meetings} of {needed:,}" if needed > one.meetings else str(one.meetings)


def _endpoint(one: Judged) -> str:
    return "test loss" if one.metric == LOSS else "ROUGE"


def _listed(gains: Sequence[float], digits: int) -> str:
    return ", ".join(signed(own, digits) for own in gains)


def _span(gain: Interval, digits: int) -> str:
    return "none" if gain.is_point else f"{signed(gain.low, digits)} … {signed(gain.high, digits)}"


def claim_record(one: Judged) -> dict[str, Any]:
    """Everything that a claim was judged by, to six digits."""
    return {
        **one.claim.model_dump(include={"number", "text", "ours", "theirs", "family", "margin"}),
        "metric": one.metric,
        "effect": one.effect,
        "gain": None if one.gain is None else one.gain.rounded(6),
        "visible": None if one.gain is None else round(one.gain.visible, 6),
        "meetings": one.meetings,
        "meetings_to_decide": one.meetings_to_decide,
        "by_run": [round(own, 6) for own in one.by_run],
        "by_client": {client: [round(own, 6) for own in gains] for client, gains in one.by_client.items()},
        "p": None if one.p is None else round(one.p, 6),
        "p_holm": None if one.p_holm is None else round(one.p_holm, 6),
        "word": one.word,
        "why": one.why,
        "shared": list(one.shared),
    }
