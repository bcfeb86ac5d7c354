"""params.yaml -> one resolved order a stage and run, so that a change re-runs exactly what depends on it."""

from collections import Counter

from pipeline.corpora.sources import is_outdated
from pipeline.model.precision import threads_of
from pipeline.plan.checks import read_params, unshown
from pipeline.plan.resolve import resolve, weights_folder
from pipeline.plan.schema import Params
from pipeline.plan.training import left_out, precision_of
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json

NAMED = 12  # the most stages that a message names one by one


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


def report_changes(orders: dict[str, Json]) -> None:
    """Print which stages' orders differ from the last plan's; of more than `NAMED`, how many of each stage."""
    known = layout.last_plan()
    before = read_json(known) if known.is_file() else {}
    now = {path.removesuffix(".json"): sha256_json(order) for path, order in orders.items()}
    if not layout.is_copy():  # the plan of a copy of the workspace is not the last one here
        write_json(known, now)
    changed = [name for name in now if before.get(name) != now[name]]
    counts = Counter(name.rpartition("/")[0] or name for name in changed)
    if len(changed) > NAMED:
        changed = [stage if count == 1 else f"{count} of {stage}" for stage, count in counts.items()]
    named = f"{counts.total()} of {len(now)} stages have a new order: {', '.join(changed)}"
    say(f"plan: {named if changed else 'nothing has changed'}")


def print_outdated() -> None:
    """Print the stages that `dvc repro` would wrongly skip, because their inputs lie outside the workspace."""
    print(" ".join(outdated(read_params())))


def outdated(params: Params) -> list[str]:
    """The stages whose corpora, folder of weights or machine, which decides the precision, have changed."""
    files = {data.source for data in params.data.values() if data.file is not None}
    stages = [f"ingest@{one}" for one in params.sources if one not in files and is_outdated(one, params.data_source)]
    backbone, report = layout.order("backbone", params.backbones[0]), layout.order("report")
    other = report.is_file() and read_json(report).get("precision") != precision_of(params)
    if params.weights is not None and backbone.is_file():
        known = read_json(backbone)["weights"]
        other |= known is None or known["files"] != weights_folder(params.weights).files
    return [*stages, "plan"] if other else stages
