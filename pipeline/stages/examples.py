"""Predictions and the teacher's certainty -> reports/examples.html, which quotes texts of the data."""

from __future__ import annotations

from statistics import fmean

from pipeline.corpora.example import sampled
from pipeline.evaluation.scores import read_rows
from pipeline.federated.methods import OURS, TURNS
from pipeline.federated.objectives.threshold import Threshold
from pipeline.plan.orders import ReportOrder, RunRow, read_order
from pipeline.report.notes import looks, warnings
from pipeline.report.page import page
from pipeline.report.summaries import cases, lens, median_cases
from pipeline.runs.result_files import read_result
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json

AVERAGING = "AdaFedAvg"


def run() -> None:
    """Render the page from the first seed's predictions of the first section's runs on conversations."""
    order = read_order(layout.order("report"), ReportOrder)
    first = _first(order)
    predictions = {row.name: read_jsonl(layout.predictions(row.id)) for row in first}
    ours = next((row for row in first if row.part == OURS), None)
    theirs = next((row for row in first if row.part == AVERAGING), None)
    tau = _tau(ours) if ours else 0.0
    named, seeds = looks(order.runs), {row.seed for row in order.runs}
    about = read_json(layout.models_behind(ours.id))["lens"] if ours else []
    write_text(
        layout.EXAMPLES_PAGE,
        page(
            "examples_page.html.j2",
            warnings=warnings(order.backbone, sampled(first[0].data) if first else ()),
            seed="" if len(seeds) == 1 or not first else f", of seed {first[0].seed}",
            cases=cases(predictions, named),
            medians=_medians(order, ours, theirs, predictions) if ours and theirs else [],
            lens=lens(about, tau, predictions),
            ours=named[ours.name].label if ours else OURS,
            tau=f"{tau:g}",
        ),
    )
    say(f"examples: {layout.EXAMPLES_PAGE} is ready")


def _tau(run: RunRow) -> float:
    """The threshold of a run in nats; of a quantile, its mean over rounds."""
    assert run.training is not None
    threshold = Threshold.parse(run.training.hyperparameters["tau"])
    rows = read_result(run.name)[run.seed]["history"] if threshold.quantile is not None else []
    return fmean(float(row["tau"]) for row in rows if row.get("tau")) if rows else threshold.nats


def _first(order: ReportOrder) -> list[RunRow]:
    """The first section's runs at the first seed, if they write predictions beside a reference."""
    named = next(iter(order.sections.values()), [row.name for row in order.runs])
    rows = [row for row in order.runs if row.name in named and row.method not in TURNS and not row.left_out]
    rows = [row for row in rows if row.seed == min(one.seed for one in rows)]
    return [row for row in rows if any(line.get("reference") for line in read_jsonl(layout.predictions(row.id))[:1])]


def _medians(order: ReportOrder, ours: RunRow, theirs: RunRow, predictions: Json) -> list[Json]:
    """Each client's example with the median of what ours gains."""
    metric = load_task(order.data[ours.data[0]]).metrics[0]
    rows = (ours, theirs)
    scored = {row.name: read_rows(read_result(row.name)[row.seed]["scores"]["examples"]) for row in rows}
    return median_cases(scored, predictions, metric)
