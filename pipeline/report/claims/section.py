"""A part of the page on the paper: what a table or figure says, and the study that is its counterpart here."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.report.claims.claim import Claim, Equal

NOT_THEIRS = "not in the paper"
ADDED = "put into words after results of former runs were known"
"""Said of a claim that came late: its margin is the rule's, but the choice of the sentence may owe to the results."""
SELECTIVE = "fedselectkd"
"""The run of the main table that Fig. 11, Table VIII and the rating sheets are about."""
FEDAVG_BASE, SELECTIVE_BASE = "fedavg-base", "fedselectkd-base"
"""What runs beyond the main table are compared with."""


@dataclass(frozen=True)
class Section:
    """One table or figure of the paper, and the study of params.yaml that is its counterpart.

    `says`: the paper's claim in words. `tables`: those of its tables in paper_results.csv. `remark`: what differs here,
    or where the paper is at odds with itself.
    """

    study: str
    source: str
    title: str
    says: str
    claims: tuple[Claim, ...]
    tables: tuple[str, ...] = ()
    remark: str = ""


def by_loss(
    text: str,
    ours: str,
    theirs: str,
    *,
    clients: tuple[str, ...] = (),
    remark: str = "",
    equal: Equal | None = None,
) -> Claim:
    """That one run's test loss is below another's."""
    claim = Claim(text, NOT_THEIRS, ours, theirs, "below", "loss", clients=clients, equal=equal)
    return claim.remarked("by test loss, nats a token", remark)
