"""The files that every page has: its tables, figures and metrics, the page, the gallery, and who the runs are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from markupsafe import Markup

from pipeline.corpora.example import is_sample
from pipeline.evaluation.comparisons import Comparison, unknown_runs
from pipeline.evaluation.pooled import LabelCounts, divergences
from pipeline.plan.orders import ReportOrder
from pipeline.report.figures.matrices import draw_gallery
from pipeline.report.notes import warnings
from pipeline.report.page import Drawing, page, piece, place
from pipeline.report.task_tables import federation_row
from pipeline.runs.result_files import Result, identity_of
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table

SEEN = 0.01  # of a setting's test texts; where more are trained on, a page has the scores without them


def empty_outputs() -> None:
    """Remove the tables, figures and metrics of the last page; called before the new ones are written."""
    for folder in (layout.TABLES, layout.FIGURES, layout.all_metrics().parent):
        empty_folder(folder)


def write_page(order: ReportOrder, results: Mapping[str, Result], text: str) -> None:
    """Write a page, the gallery of its settings, and the identities of its runs."""
    write_text(layout.REPORT, text)
    write_gallery(order)
    identities = {row.id: identity_of(row, results[row.id]["training"]) for row in order.runs if row.id in results}
    write_json(layout.identities(), identities)


def warnings_of(order: ReportOrder, results: Mapping[str, Result]) -> Markup:
    """The warnings at the top of a page: results on samples, random weights, and test texts that are trained on."""
    sources = [source for own in results.values() for source in own["source"].items()]
    samples = {name for name, source in sources if is_sample(source)}
    return warnings(order.backbone, samples) + piece("seen", settings=_seen(order, results))


def _seen(order: ReportOrder, results: Mapping[str, Result]) -> dict[str, Json]:
    """Setting -> how many of its test texts are training texts, too; of settings where any are (see `_seen_of`)."""
    settings: dict[str, dict[str, list[Json]]] = {}  # setting -> run -> its examples at every seed
    tasks: dict[str, str] = {}  # setting -> its task's module
    for row in order.runs:
        if row.id in results:
            settings.setdefault(row.setting, {}).setdefault(row.name, []).extend(results[row.id]["scores"]["examples"])
            tasks[row.setting] = order.data[row.data[0]]
    return {name: found for name, runs in settings.items() if (found := _seen_of(runs, tasks[name]))}


def _seen_of(runs: Mapping[str, Sequence[Json]], task: str) -> Json:
    """How many test texts are trained on; above 1%, each run's mean of the first metric with and without them.

    Splits that others published stay as they are, so that scores compare. Empty if no text is trained on.
    """
    seen = {row["id"] for own in runs.values() for row in own if "seen" in row}
    if not seen:
        return {}
    metric = load_task(task).metrics[0]
    tests, scores = {row["id"] for own in runs.values() for row in own}, {}
    for run, own in runs.items() if len(seen) > SEEN * len(tests) else ():
        every = [row for row in own if metric.name in row]
        if without := [row for row in every if "seen" not in row]:
            scores[run] = [fmean(row[metric.name] for row in rows) for rows in (every, without)]
    return {"seen": len(seen), "tests": len(tests), "metric": metric.title, "scores": scores}


def say_unknown(order: ReportOrder, comparisons: Sequence[Comparison]) -> None:
    """Print the runs of comparisons that are not planned. Raises QuorumError if one is a misspelt run."""
    if unknown := unknown_runs(layout.COMPARISONS, comparisons, [row.name for row in order.runs]):
        say(f"report: {layout.COMPARISONS}: params.yaml has no {', '.join(unknown)}; their comparisons are not run")


def table_if_any(path: Path) -> list[dict[str, str]]:
    """The rows of a table that another stage writes; none without the file."""
    return read_table(path) if path.is_file() else []


def papers_numbers(order: ReportOrder) -> list[dict[str, str]]:
    """The rows of the paper's numbers; none where params.yaml names no such file."""
    return read_table(layout.paper(order.paper)) if order.paper else []


def drawn_of(setting: str) -> dict[int, Json]:
    """Seed -> `clients` (client -> label -> training examples) and `unassigned`; empty where none are drawn."""
    path = layout.clients_of(setting)
    return {int(seed): own for seed, own in read_json(path)["seeds"].items()} if path.is_file() else {}


def write_gallery(order: ReportOrder) -> None:
    """Draw every setting at its first seed, and write the page."""
    shown = []
    for name, setting in order.settings.items():
        counts: LabelCounts = next(iter(drawn_of(name).values()), {"clients": {}})["clients"]
        if any(counts.values()):
            skew = {"α": getattr(setting, "alpha", None), "β": getattr(setting, "beta", None)}
            title = ", ".join([name, *(f"{letter} = {value:g}" for letter, value in skew.items() if value)])
            drawn = draw_gallery(counts, divergences(counts))
            figure = place(Drawing(drawn, f"federation-{name}", "federation", {"title": title}))
            shown.append((name, federation_row(counts), figure))
    write_text(layout.GALLERY, page("gallery.html.j2", federations=shown))
