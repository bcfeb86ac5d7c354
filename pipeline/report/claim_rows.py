"""A judged claim as a row of a page, and as a record of a metrics file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.evaluation.claims import Judged, Word
from pipeline.report.page import p_value, signed, span_text
from pipeline.tasks.task import LOSS

SMALL = 0.01
"""An effect in nats below which gains are told to the fourth digit."""
COLOURS: dict[Word, str] = {
    "supported": "held",
    "supported, smaller": "held",
    "excluded": "not",
    "undecided": "open",
    "not run": "none",
}


def claim_row(one: Judged, runs: Mapping[int, str]) -> dict[str, Any]:
    """What the page says of a claim on one endpoint, as text.

    Args:
        runs: seed -> the letter of its run.
    """
    digits, gain = digits_of(one), one.gain
    return {
        "number": one.claim.number,
        "text": one.claim.text,
        "endpoint": _endpoint(one),
        "effect": signed(one.effect, digits) + (" (ours)" if one.claim.margin else ""),
        "gain": "–" if gain is None else signed(gain.value, digits),
        "by_run": _listed(one.by_run, digits, runs) if len(one.by_run) > 1 else "",
        "interval": "" if gain is None else span_text(gain, digits) or "none",
        "p": "" if one.p_holm is None or not _is_tested(one) else p_value(one.p_holm),
        "error": "" if gain is None else f"{gain.standard_error:.{digits}f}",
        "visible": "" if gain is None else f"{gain.visible:.{digits}f}",
        "meetings": _meetings(one),
        "word": one.word,
        "colour": COLOURS[one.word],
        "why": one.why,
        "shared": "; ".join(one.shared),
    }


def client_rows(judged: Sequence[Judged], runs: Mapping[int, str]) -> tuple[list[str], list[list[str]]]:
    """(Head, a row a claim and endpoint that was run): each client's gain at each seed."""
    made = [one for one in judged if one.by_client]
    clients = list(dict.fromkeys(client for one in made for client in one.by_client))
    rows = [
        [
            f"{one.claim.number}: {one.claim.text}",
            _endpoint(one),
            *(_listed(one.by_client[client], digits_of(one), runs) for client in clients),
        ]
        for one in made
    ]
    return ["claim", "endpoint", *clients], rows


def digits_of(one: Judged) -> int:
    """How many of a gain are told: more, where the effect itself is small."""
    if one.metric != LOSS.name:
        return 2
    return 4 if abs(one.effect) < SMALL else 3


def _meetings(one: Judged) -> str:
    """On how many meetings, and of a claim that too few leave undecided how many would show its gain."""
    needed = one.meetings_to_show
    if one.word != "undecided" or one.why or needed is None:
        return str(one.meetings or "")
    return f"{one.meetings} of {needed:,}" if needed > one.meetings else str(one.meetings)


def _endpoint(one: Judged) -> str:
    return "test loss" if one.metric == LOSS.name else "ROUGE"


def _listed(gains: Mapping[int, float], digits: int, runs: Mapping[int, str]) -> str:
    return ", ".join(f"{runs.get(seed, '')} {signed(own, digits)}".strip() for seed, own in gains.items())


def claim_record(one: Judged) -> dict[str, Any]:
    """Everything that a claim was judged by, to six digits."""
    return {
        **one.claim.model_dump(include={"number", "text", "ours", "theirs", "family", "margin"}),
        "metric": one.metric,
        "effect": one.effect,
        "gain": None if one.gain is None else one.gain.rounded(6),
        "visible": None if one.gain is None else round(one.gain.visible, 6),
        "meetings": one.meetings,
        "meetings_to_show": one.meetings_to_show,
        "by_run": _rounded(one.by_run),
        "by_client": {client: _rounded(gains) for client, gains in one.by_client.items()},
        "p": round(one.p, 6) if one.p is not None and _is_tested(one) else None,
        "p_holm": round(one.p_holm, 6) if one.p_holm is not None and _is_tested(one) else None,
        "word": one.word,
        "why": one.why,
        "shared": list(one.shared),
    }


def _is_tested(one: Judged) -> bool:
    """Whether p is of the claim: against a margin the interval decides, and p is still of no difference at all."""
    return one.claim.margin is None


def _rounded(gains: Mapping[int, float]) -> dict[str, float]:
    return {str(seed): round(own, 6) for seed, own in gains.items()}
