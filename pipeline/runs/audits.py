"""What audits of one seed's table there are, which runs they look at, and what is kept of them; see `auditing`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.federated.methods import OURS
from pipeline.plan.orders import GenerateOrder, ReportOrder, RunRow, read_order
from pipeline.runs.kept import kept_identity
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json

ANEW, BY_ROUND, ROUNDS, BEAMS, FP32 = "anew", "validation", "rounds", "beams", "fp32"
VALIDATED = 40
KNOBS: dict[str, dict[str, Any]] = {
    ANEW: {},
    BY_ROUND: {"validated": VALIDATED},
    ROUNDS: {"validated": VALIDATED, "around": 2},
    BEAMS: {"beams": 4},
    FP32: {"precision": "fp32"},
}
"""Audit -> what it changes. `validated`: examples a client that choose a round; `around`: how many rounds before and
after the best by loss may be chosen; `beams`: of the search; `precision`: of encoding, training and decoding.

ANEW changes nothing. What it has of the same models is what the others are compared with: a table may have been written
by other code, on another machine or after another training, which alone moves ROUGE.
"""
COMPARED = ("AdaFedAvg", OURS)
"""The rows that are decoded with beams and trained in fp32."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Audited:
    """What an audit found of its runs.

    `models`: run -> a digest of its adapters and of the code that writes with them. `rows`: a row a run and test
    example, with its scores as results/ has them; of BY_ROUND a row a run, client and round, with means. `rounds`: run
    -> client -> (the best round by loss, the round that is kept), of an audit that keeps others.
    """

    models: Mapping[str, str]
    rows: Rows
    rounds: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)


def kept_audits() -> dict[str, Audited]:
    """Audit -> what it found, of those that look at the runs as planned."""
    runs = {name: own for name, own in runs_of_audits().items() if own and layout.audit(name).is_file()}
    files = {name: read_json(layout.audit(name)) for name in runs}
    return {
        name: Audited(kept["models"], kept["rows"], kept["rounds"])
        for name, kept in files.items()
        if kept["identity"] == identity(name, runs[name])
    }


def read_audits() -> dict[str, Audited]:
    """The same, of those that look at the models that ANEW looks at: only these can be compared."""
    kept = kept_audits()
    return of_these_models(kept, kept[ANEW].models) if ANEW in kept else {}


def of_these_models(kept: Mapping[str, Audited], models: Mapping[str, str]) -> dict[str, Audited]:
    """The audits that looked at these models. `models`: run -> its digest."""
    return {name: own for name, own in kept.items() if own.models.items() <= models.items()}


def runs_of_audits() -> dict[str, list[RunRow]]:
    """Audit -> the planned runs that it looks at."""
    rows = audited_rows(read_order(layout.order("report"), ReportOrder).runs)
    two = compared(rows)
    return {ANEW: rows, BY_ROUND: rows, ROUNDS: rows, BEAMS: two, FP32: two}


def compared(rows: Iterable[RunRow]) -> list[RunRow]:
    """The rows of the main table that every audit makes, the expensive ones too."""
    return [row for row in rows if row.part in COMPARED and layout.group_of(row.id) == layout.MAIN]


def audited_rows(planned: Sequence[RunRow]) -> list[RunRow]:
    """The rows of the main table, and those with a client's own start, at the seed that keeps every round's models.

    Of these, those that are trained in the table's setting and write summaries.
    """
    return [
        row
        for row in planned
        if row.setting == planned[0].setting
        and row.training
        and row.training.keep_rounds
        and (layout.group_of(row.id) == layout.MAIN or row.training.hyperparameters.get("local_start") == "own")
        and _writes(row)
    ]


def identity(name: str, rows: Sequence[RunRow]) -> str:
    """What an audit is known by: the runs that it looks at, and how."""
    return sha256_json([name, KNOBS[name], [kept_identity(row.id) for row in rows]])


def _writes(row: RunRow) -> bool:
    return read_order(layout.order("generate", row.id), GenerateOrder).rule is not None
