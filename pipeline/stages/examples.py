"""Predictions and the teacher's certainty -> reports/examples.html, which quotes texts of the data."""

from pipeline.corpora.example import sampled
from pipeline.federated.methods import OURS, TURNS
from pipeline.plan.orders import ReportOrder, RunRow, read_order
from pipeline.report.notes import looks, warnings
from pipeline.report.page import page
from pipeline.report.summaries import cases, lens, median_cases
from pipeline.runs.result_files import read_result
from pipeline.runs.results import knob_of, scores_of
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_text
from pipeline.workspace.progress import say

AVERAGING = "AdaFedAvg"


def run() -> None:
    """Render the page from the first seed's predictions of the first section's runs on conversations."""
    order = read_order(layout.order("report"), ReportOrder)
    first = _first(order)
    predictions = {row.name: read_jsonl(layout.predictions(row.id)) for row in first}
    ours, theirs = (next((row for row in first if row.part == part), None) for part in (OURS, AVERAGING))
    pair = [row for row in (ours, theirs) if ours and row]
    results = scores_of(pair, {row.id: read_result(row.name)[row.seed] for row in pair})
    tau = knob_of(results, ours.name, "tau") if ours else 0.0
    metric = load_task(order.data[pair[0].data[0]]).metrics[0] if pair else None
    named, seeds = looks(order.runs), {row.seed for row in order.runs}
    about = read_json(layout.models_behind(ours.id))["lens"] if ours else []
    write_text(
        layout.EXAMPLES_PAGE,
        page(
            "examples_page.html.j2",
            warnings=warnings(order.backbone, sampled(first[0].data) if first else ()),
            seed="" if len(seeds) == 1 or not first else f", of seed {first[0].seed}",
            cases=cases(predictions, named),
            medians=median_cases(results.scored, predictions, metric) if metric and ours and theirs else [],
            lens=lens(about, tau, predictions),
            ours=named[ours.name].label if ours else OURS,
            tau=f"{tau:g}",
        ),
    )
    say(f"examples: {layout.EXAMPLES_PAGE} is ready")


def _first(order: ReportOrder) -> list[RunRow]:
    """The first section's runs at the first seed, if they write predictions beside a reference."""
    named = next(iter(order.sections.values()), [row.name for row in order.runs])
    rows = [row for row in order.runs if row.name in named and row.method not in TURNS and not row.left_out]
    rows = [row for row in rows if row.seed == min(one.seed for one in rows)]
    return [row for row in rows if any(line.get("reference") for line in read_jsonl(layout.predictions(row.id))[:1])]
