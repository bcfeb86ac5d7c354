"""params.yaml -> one resolved order a stage and run, so that a change re-runs exactly what depends on it."""

from __future__ import annotations

from pipeline.model.precision import threads_of
from pipeline.plan.changes import report_changes
from pipeline.plan.checks import read_params, unshown
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params
from pipeline.plan.training import left_out, precision_of
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say


def run() -> None:
    """Check params.yaml, write `data/plan/`, and say what changed since the last plan."""
    params = read_params()
    orders = resolve(params)
    say(_of_precision(params))
    say(f"plan: threads: {threads_of(params.threads)}")
    for name in params.runs_of_scale:
        if reason := left_out(params, name):
            say(f"plan: runs.{name}: left out: {reason}")
    for name, remedy in unshown(params).items():
        say(f"plan: runs.{name}: no table will show it, reports/metrics.json alone; {remedy}")
    for path, order in orders.items():
        write_json(layout.PLAN / path, order)
    report_changes(orders)


def _of_precision(params: Params) -> str:
    found = precision_of(params)
    if params.precision != "auto":
        return f"plan: precision: {found}, as params.yaml has it"
    does = "multiplies bf16 natively" if found == "bf16" else "does not multiply bf16 natively"
    return f"plan: precision: {found}, as this machine {does}"
