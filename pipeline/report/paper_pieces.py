"""The sections of the page on the paper that have more than comparisons of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipeline.federated.methods import OURS
from pipeline.plan.orders import ReportOrder
from pipeline.report import pieces
from pipeline.report.naming import looks
from pipeline.report.page import Canvas, piece
from pipeline.report.pieces import Analysis, Rows
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric

SELECTIVE, AVERAGING, DISTILLING = "fedselectkd", "fedavg", "fedkd"
"""The main table's runs with which others are compared; the rating sheets compare the first two."""


@dataclass(frozen=True)
class Material:
    """The inputs of the pieces: tables of other stages, and the model's size in bytes."""

    shares: Rows
    pos: Rows
    ratings: Rows
    trials: Rows
    analysis: Analysis
    model_bytes: int


def extra_pieces(
    order: ReportOrder, results: Results, material: Material, canvas: Canvas, metric: Metric
) -> dict[str, list[Markup]]:
    """Section -> its pieces; their figures are saved on a canvas.

    Args:
        metric: the score by which runs are compared.
    """

    def runs(section: str) -> Sequence[str]:
        """A section's runs."""
        return order.sections.get(section, ())

    def sweep(knob: str, name: str) -> list[Markup]:
        """The runs of a section named after a knob, against the knob."""
        return pieces.knob_sweep(canvas, results, runs(knob), knob, name, SELECTIVE, metric)

    # The runs of these have the same clients and rounds, so that their bytes can be compared.
    sent = list(dict.fromkeys([AVERAGING, DISTILLING, *runs("algorithms"), *runs("hard")]))
    distilled = [row["run"] for row in material.shares][:1]
    return {
        "tau": sweep("tau", "τ"),
        "lambda": sweep("lambda", "λ"),
        "algorithms": pieces.tuned(results, material.trials, runs("algorithms")),
        "hard": pieces.tuned(results, material.trials, runs("hard")),
        "noniid": pieces.untrained(results.metrics, "zeroshot", metric),
        "case": [piece("examples_link")],
        "human": pieces.ratings(canvas, material.ratings, OURS, order.sign_flips),
        "sampling": pieces.rounds_of_clients(results, runs("sampling")),
        "words": [
            *pieces.words_learned(material.shares, material.pos),
            *pieces.parts_of_speech(canvas, material.pos, distilled),
        ],
        "mechanism": [
            *pieces.teacher_and_student(canvas, results, SELECTIVE),
            *pieces.teacher_deciles(canvas, results, material.analysis),
        ],
        "matrix": pieces.crossed_losses(canvas, material.analysis),
        "divergence": pieces.divergences(canvas, material.analysis),
        "communication": pieces.bytes_sent(canvas, results, sent, looks(order.runs), material.model_bytes),
    }
