"""Results and predictions of a few minutes -> the page that a first run makes, with the result beside them."""

from collections.abc import Mapping

from pipeline.evaluation.intervals import Interval
from pipeline.federated.methods import OURS, TURNS
from pipeline.pages.files import warnings_of, write_page
from pipeline.pages.main import write_files
from pipeline.plan.orders import ReportOrder
from pipeline.report.effects import HEAD
from pipeline.report.main_page import draw, rows_are_of, summary
from pipeline.report.notes import looks
from pipeline.report.page import Cell, embedded, gain_digits, gain_text, p_value, page, table
from pipeline.report.summaries import cases, lens
from pipeline.tasks import TASKS
from pipeline.tasks.task import LOSS, Metric, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table

SHOWN = {one.name: one for one in (load_task(TASKS["summarize"]).metrics[0], LOSS)}
"""The metrics of the result's tables, by name."""


def run(order: ReportOrder) -> None:
    """Render the page. Raises QuorumError if no run has a result, or its predictions are missing."""
    (data, files), named = write_files(order), looks(order.runs)
    texts = {row.name: read_jsonl(layout.predictions(row.id)) for row in data.order.runs if row.method not in TURNS}
    ours = next((row for row in data.order.runs if row.part == OURS), None)
    tau = data.tau if data.selective else 0.0
    teacher = read_json(layout.models_behind(ours.id))["lens"] if ours else []
    first = [one for client in data.clients for one in [row for row in teacher if row["client"] == client][:1]]
    text = page(
        "tour_page.html.j2",
        draw(data),
        question=data.comparisons.question,
        warnings=warnings_of(order, files),
        summary=summary(data),
        rows_are_of=rows_are_of(data),
        cases=cases(texts, named),
        lens=lens(first, tau, texts),
        ours=named[ours.name].label if ours else OURS,
        tau=f"{tau:g}",
        result=_result(),
    )
    write_page(order, files, text)


def _result() -> Json:
    """The effects, the scores and the forest plot of the committed result."""
    tables = layout.RESULT / layout.TABLES
    scores = [row for row in read_table(tables / "main.csv") if row["client"] == "mean"]
    heads = ["Method", *(f"{one.title}, {one.unit}" for one in SHOWN.values())]
    rows = [[row["method"], *(_score(row[one.name], one) for one in SHOWN.values())] for row in scores]
    rows_of = read_table(tables / "comparisons.csv")
    effects = [_effect(row) for row in rows_of if row["effect"] and row["metric"] in SHOWN]
    return {
        "effects": table(HEAD[:4], effects, "effects"),
        "scores": table(heads, rows, "summary"),
        "forest": embedded(layout.RESULT / layout.FIGURES / "forest.svg", "Effects with 95% intervals, all of QMSum."),
    }


def _effect(row: Mapping[str, str]) -> list[object]:
    effect = Interval(*(float(row[column] or "nan") for column in ("effect", "low", "high")))
    metric = SHOWN[row["metric"]]
    name = Cell(row["terms"] + ("" if row["family"] else " *"), kind="text")
    return [name, metric.title, gain_text(effect, gain_digits(metric)), p_value(float(row["p_holm"] or row["p"]))]


def _score(value: str, metric: Metric) -> str:
    return f"{float(value):.{metric.digits}f}" if value else "–"
