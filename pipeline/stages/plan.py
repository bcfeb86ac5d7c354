"""params.yaml -> one resolved order a stage and run, so that a change re-runs exactly what depends on it."""

from __future__ import annotations

from typing import Any

from pipeline.model.precision import threads_of
from pipeline.plan.changes import report_changes
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params, read_params
from pipeline.plan.text_pages import unshown
from pipeline.plan.text_resolve import resolve_texts
from pipeline.plan.texts import is_of_texts, read_text_params
from pipeline.plan.training import precision_of, unfit
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say


def run() -> None:
    """Check params.yaml, write `data/plan/`, and say what changed since the last plan."""
    if is_of_texts():
        of_texts = read_text_params()
        for name, remedy in unshown(of_texts).items():
            say(f"plan: runs.{name}: no table will show it, reports/metrics.json alone; {remedy}")
        _write(resolve_texts(of_texts))
        return
    params = read_params()
    orders = resolve(params)
    say(_of_precision(params))
    say(f"plan: threads: {threads_of(params.threads)}")
    for study, names in params.studies.items():
        absent = [name for name in names if name not in params.all_runs]
        if absent:
            say(f"plan: studies.{study}: left out, as params.yaml has no such runs: {', '.join(absent)}")
    for name in params.more_runs:
        if reason := unfit(params, name):
            say(f"plan: more_runs.{name}: left out: {reason}")
    _write(orders)


def _write(orders: dict[str, dict[str, Any]]) -> None:
    for path, order in orders.items():
        write_json(layout.PLAN / path, order)
    report_changes(orders)


def _of_precision(params: Params) -> str:
    found = precision_of(params)
    if params.precision != "auto":
        return f"plan: precision: {found}, as params.yaml has it"
    does = "multiplies bf16 natively" if found == "bf16" else "does not multiply bf16 natively"
    return f"plan: precision: {found}, as this machine {does}"
