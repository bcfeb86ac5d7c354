"""The sections of the page on the paper: their pieces beyond comparisons of runs, and their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from pipeline.federated.methods import OURS
from pipeline.plan.orders import ReportOrder
from pipeline.report import pieces, sending
from pipeline.report.figures import comparison, parts_of_speech
from pipeline.report.figures.style import save
from pipeline.report.naming import colours, labels
from pipeline.report.page import Canvas
from pipeline.report.pieces import Analysis, Rows
from pipeline.runs.results import Metrics, Results
from pipeline.tasks.task import LOSS, load_task

SELECTIVE, AVERAGING, DISTILLING = "fedselectkd", "fedavg", "fedkd"
"""The main table's runs with which others are compared; the rating sheets compare the first two."""
SENDING = ("algorithms", "hard")
"""Studies whose runs have the same clients and rounds, so that their bytes can be compared."""


@dataclass(frozen=True)
class Material:
    """The inputs of the pieces: tables of other stages, and the model's size in bytes."""

    shares: Rows
    pos: Rows
    ratings: Rows
    trials: Rows
    analysis: Analysis
    model_bytes: int


def extra_pieces(order: ReportOrder, results: Results, material: Material, folder: Path) -> dict[str, list[Markup]]:
    """Section -> its pieces; their figures are saved in a folder."""
    canvas, studies = Canvas(folder), order.sections
    metric = load_task(next(iter(order.data.values()))).metrics[0]

    def runs(study: str) -> Sequence[str]:
        """A study's runs."""
        return studies.get(study, ())

    sent = [AVERAGING, DISTILLING, *(run for study in SENDING for run in runs(study))]
    return sweeps(order, results, folder) | {
        "algorithms": pieces.tuned(results, material.trials, runs("algorithms")),
        "hard": pieces.tuned(results, material.trials, runs("hard")),
        "noniid": pieces.untrained(results.metrics, "zeroshot", metric),
        "human": pieces.ratings(canvas, material.ratings, OURS, order.sign_flips),
        "sampling": pieces.rounds_of_clients(results, runs("sampling")),
        "words": [*pieces.words_learned(material.shares, material.pos), *_parts_of_speech(canvas, material)],
        "mechanism": [
            *pieces.teacher_and_student(canvas, results, SELECTIVE),
            *pieces.teacher_deciles(canvas, results, material.analysis),
        ],
        "matrix": pieces.crossed_losses(canvas, material.analysis),
        "divergence": pieces.divergences(canvas, material.analysis),
        "communication": sending.bytes_sent(
            canvas, results, list(dict.fromkeys(sent)), labels(order.runs), colours(order.runs), material.model_bytes
        ),
    }


def sweeps(order: ReportOrder, results: Results, folder: Path) -> dict[str, list[Markup]]:
    """Sweeps of τ and λ over the runs of the studies `tau` and `lambda`."""
    canvas, metric = Canvas(folder), load_task(next(iter(order.data.values()))).metrics[0]
    return {
        knob: pieces.knob_sweep(canvas, results, order.sections.get(knob, ()), knob, name, SELECTIVE, metric)
        for knob, name in (("tau", "τ"), ("lambda", "λ"))
    }


def _parts_of_speech(canvas: Canvas, material: Material) -> list[Markup]:
    """A figure for each client of what was distilled, by part of speech (Fig. 11)."""
    run = [row["run"] for row in material.shares][:1]
    return [
        canvas.place(
            parts_of_speech.draw(material.pos, client), f"pos_{client}", "parts_of_speech", client=client, runs=run
        )
        for client in dict.fromkeys(row["client"] for row in material.pos)
    ]


def draw(order: ReportOrder, compared: Mapping[str, Metrics], by_seed: Sequence[Metrics], folder: Path) -> None:
    """Save a figure for each study that compares runs."""
    named, coloured = labels(order.runs), colours(order.runs)
    endpoints = (load_task(next(iter(order.data.values()))).metrics[0], LOSS)
    for study, shown in compared.items():
        if shown:
            save(comparison.draw(shown, by_seed, named, coloured, endpoints), folder, study)
