"""A claim and its verdict as a record of paper.json."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pipeline.evaluation.intervals import Interval
from pipeline.report.claims.claim import Judged


def record_of(one: Judged) -> dict[str, Any]:
    """Everything that a claim was judged by; figures in the claim's own unit, to four digits."""
    return {
        "claim": one.claim.text,
        "source": one.claim.source,
        "remark": one.claim.remark,
        "ours": one.claim.ours,
        "theirs": one.claim.theirs,
        "clients": list(one.claim.clients),
        "kind": one.claim.kind,
        "rule": one.claim.rule,
        "metric": one.claim.metric,
        "paper": one.claim.effect,
        "difference": _rounded(one.interval),
        "test_loss": _rounded(one.loss),
        "shares": [asdict(share) for share in one.shares],
        "same_adapter": list(one.same),
        "test_loss_before_aggregation": None if one.before is None else round(one.before, 4),
        "by_interval": one.by_interval,
        "converged": one.converged,
        "withheld": one.withheld,
        "verdict": one.verdict,
    }


def _rounded(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else {name: round(value, 4) for name, value in asdict(interval).items()}
