"""What audits of one seed's table there are, which runs they look at, and what is kept of them; see `auditing`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.federated.methods import OURS
from pipeline.plan.orders import GenerateOrder, ReportOrder, RunRow, read_order
from pipeline.runs.kept import kept_identity
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json

BY_ROUND, ROUNDS, WITH_BEAMS, IN_FP32 = "validation", "rounds", "beams", "fp32"
VALIDATED = 40
KNOBS: dict[str, dict[str, Any]] = {
    BY_ROUND: {"validated": VALIDATED},
    ROUNDS: {"validated": VALIDATED, "around": 2},
    WITH_BEAMS: {"beams": 4},
    IN_FP32: {"precision": "fp32"},
}
"""Audit -> examples a client that choose a round, rounds before and after the best by loss that stand for choice; beams
beside greedy search; the precision beside the table's."""
COMPARED = ("AdaFedAvg", OURS)
"""The rows that are decoded with beams and trained in fp32."""

Audited = list[dict[str, Any]]
"""A row a run and client, the mean over clients last: its metrics, and what the audit says besides.

That of BY_ROUND is a row a run, client and round, without a mean.
"""


def compared(rows: Iterable[RunRow]) -> list[RunRow]:
    return [row for row in rows if row.part in COMPARED and layout.group_of(row.id) == layout.MAIN]


def read_audits() -> dict[str, Audited]:
    """Audit -> its rows, of those that are there and look at the runs as planned."""
    found = {}
    for name, own in runs_of_audits().items():
        path = layout.audit(name)
        if path.is_file() and read_json(path)["identity"] == identity(name, own):
            found[name] = read_json(path)["rows"]
    return found


def runs_of_audits() -> dict[str, list[RunRow]]:
    """Audit -> the planned runs that it looks at."""
    rows = audited_rows(read_order(layout.order("report"), ReportOrder).runs)
    return {BY_ROUND: rows, ROUNDS: rows, WITH_BEAMS: compared(rows), IN_FP32: compared(rows)}


def audited_rows(planned: Sequence[RunRow]) -> list[RunRow]:
    """The runs of the main table's setting that write summaries, at the seed that keeps every round's models."""
    return [
        row
        for row in planned
        if row.setting == planned[0].setting and row.training and row.training.keep_rounds and _writes(row)
    ]


def identity(name: str, rows: Sequence[RunRow]) -> str:
    """What an audit is known by: the runs that it looks at, and how."""
    return sha256_json([name, KNOBS[name], [kept_identity(row.id) for row in rows]])


def _writes(row: RunRow) -> bool:
    return read_order(layout.order("generate", row.id), GenerateOrder).rule is not None
