"""The teacher against the student: by how sure it is, and by round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from pipeline.report.canvas import Canvas
from pipeline.report.figures import learning_curves, surety
from pipeline.report.figures.style import colour
from pipeline.runs.results import Results, knob_of


def teacher_deciles(canvas: Canvas, results: Results, analysis: Mapping[str, Mapping[str, Any]]) -> list[Markup]:
    pieces = []
    runs = {row.id.rpartition("/")[2]: name for name, rows in results.rows.items() for row in rows}
    for run, found in analysis.get("deciles", {}).items():
        tau = knob_of(results, runs[run], "tau")
        caption = (
            "Is the teacher better where it is surer? Tokens of the test references by decile of the teacher's "
            f"entropy; the dashed line is τ = {tau:.3g} nats. The student is a client's best adapter, the teacher what "
            f"it was sent in that round, so that it has taught the student already. Run: {run}."
        )
        pieces.append(canvas.place(surety.draw(found, tau), f"deciles_{run}", caption))
    return pieces


def teacher_and_student(canvas: Canvas, results: Results, run: str) -> list[Markup]:
    rounds = [(one, one.teacher_validation_loss) for one in results.histories.get(run, ())]
    student = [one for one, loss in rounds if loss is not None]
    teacher = [replace(one, validation_loss=loss) for one, loss in rounds if loss is not None]
    if not teacher:
        return []
    clients = list(dict.fromkeys(one.client for one in teacher))
    training = results.rows[run][0].training
    own = training is not None and training.hyperparameters.get("local_start") == "own"
    met = " The student that the teacher met is the one of the round before." if own else ""
    caption = (
        "Validation loss by round: of the student after it, and of the teacher, as it was sent before "
        f"it.{met} Run: {run}."
    )
    coloured = {"student": colour(1), "teacher": colour(2)}
    figure = learning_curves.draw({"student": student, "teacher": teacher}, clients, coloured)
    return [canvas.place(figure, f"teacher_{run}", caption)]
