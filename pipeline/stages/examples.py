"""Predictions and the teacher's certainty -> reports/examples.html, which quotes texts of the corpus."""

from __future__ import annotations

from pipeline.corpora.prepared import is_sample
from pipeline.federated.methods import OURS, TURNS
from pipeline.federated.objectives.threshold import Threshold
from pipeline.plan.orders import MainOrder, read_order
from pipeline.report.limits import random_weights
from pipeline.report.naming import labels
from pipeline.report.page import page
from pipeline.report.summaries import cases, lens
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_text
from pipeline.workspace.progress import say


def run() -> None:
    """Render the page from the first seed's summaries."""
    order = read_order(layout.order("main"), MainOrder)
    seeds = sorted({row.seed for row in order.runs})
    first = [row for row in order.runs if row.seed == seeds[0] and row.method not in TURNS]
    predictions = {row.name: read_jsonl(layout.predictions(row.id)) for row in first}
    ours = next((row for row in first if row.method == OURS), None)
    tau = Threshold.parse(ours.training.hyperparameters["tau"]).nats if ours and ours.training else 0.0
    named = labels(order.runs)
    write_text(
        layout.EXAMPLES_PAGE,
        page(
            "examples_page.html.j2",
            sample=is_sample(read_json(layout.notes("qmsum"))),
            random_weights=random_weights(order.backbone),
            seed="" if len(seeds) == 1 else f", of seed {seeds[0]}",
            cases=cases(predictions, named),
            lens=lens(read_json(layout.lens(ours.id)), tau, predictions) if ours else [],
            ours=named[ours.name] if ours else OURS,
            tau=f"{tau:g}",
        ),
    )
    say(f"examples: {layout.EXAMPLES_PAGE} is ready")
