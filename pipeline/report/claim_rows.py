"""A claim as a row of the page: its difference, its interval, and what to know before its verdict is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.significance import DETECTABLE
from pipeline.report.claims.claim import Judged

VERDICT_CLASS = {"held": "held", "did not hold": "not", "cannot tell": "open", "not run": "none"}


def claim_row(one: Judged, full: Mapping[str, Judged], full_scale: str) -> dict[str, str]:
    """What the page says of a claim, as text.

    Args:
        full: a claim's text -> the same claim on all of QMSum.
        full_scale: what that is called, with its backbone and seeds.
    """
    larger = full.get(one.claim.text)
    effect, interval = one.claim.effect, one.interval
    unit = " nats" if one.claim.metric == "loss" and interval is not None else ""
    return {
        "text": one.claim.text,
        "source": one.claim.source,
        "paper": "–" if effect is None else _number(effect, one),
        "ours": _value(one) + unit,
        "interval": _unbroken(_between(one)),
        "loss": "" if one.loss is None else _unbroken(f"loss {signed(one.loss.value, 3)}, {_ends(one.loss, 3)}"),
        "same": ", ".join(one.same),
        "before": "" if one.before is None else f"{signed(one.before, 3)} nats",
        "detectable": "" if interval is None else _number(DETECTABLE * interval.standard_error, one).lstrip("+"),
        "by_interval": one.by_interval,
        "by_interval_class": VERDICT_CLASS[one.by_interval],
        "verdict": one.verdict,
        "verdict_class": VERDICT_CLASS[one.verdict],
        "why": ", ".join(part for part in ("" if one.converged else "not converged", one.withheld) if part),
        "remark": one.claim.remarked(_smaller(one)).remark,
        "full": _in_full(larger, full_scale),
        "full_verdict": "" if larger is None else larger.verdict,
        "full_class": "" if larger is None else VERDICT_CLASS[larger.verdict],
    }


def _smaller(one: Judged) -> str:
    """Said of a gain that held and is surely less than half of the paper's."""
    effect, interval = one.claim.effect, one.interval
    if one.by_interval != "held" or one.claim.rule != "above" or effect is None or interval is None:
        return ""
    return "surely less than half of the paper’s" if interval.high < effect / 2 else ""


def _in_full(one: Judged | None, full_scale: str) -> str:
    """The same claim on all of QMSum, in a line."""
    if one is None:
        return ""
    why = "" if one.converged else f" (not converged; the interval alone says: {one.by_interval})"
    return f"{full_scale}: {_value(one)}, {_between(one)}: {one.verdict}{why}"


def _value(one: Judged) -> str:
    if one.shares:
        return " / ".join(f"{share.value:.0%}" for share in one.shares)
    return "–" if one.interval is None else _number(one.interval.value, one)


def _between(one: Judged) -> str:
    if one.shares:
        return "; ".join(f"{100 * share.low:.0f} … {share.high:.0%}" for share in one.shares)
    return "" if one.interval is None else f"{_number(one.interval.low, one)} … {_number(one.interval.high, one)}"


def _number(value: float, one: Judged) -> str:
    """In the claim's own unit: a share of words, of 100 ratings, nats, or points of ROUGE."""
    if one.claim.kind == "words":
        return f"{value:.0%}"
    if one.claim.metric == "preference":
        return signed(100 * value, 0)
    return signed(value, 3 if one.claim.metric == "loss" else 2)


def signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _unbroken(text: str) -> str:
    """Lines break between intervals, and not within one."""
    return text.replace(" … ", "\N{NO-BREAK SPACE}…\N{NO-BREAK SPACE}")


def _ends(interval: Interval, digits: int) -> str:
    return f"{signed(interval.low, digits)} … {signed(interval.high, digits)}"


def counts(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(name)} {name}" for name in VERDICT_CLASS if name in verdicts)
