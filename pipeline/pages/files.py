"""The files that every page has: its tables, figures and metrics, the page, the gallery, and who the runs are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.evaluation.pooled import LabelCounts, divergences
from pipeline.plan.orders import ReportOrder
from pipeline.report.figures.matrices import draw_gallery
from pipeline.report.figures.style import save
from pipeline.report.page import embedded, page
from pipeline.report.task_tables import federation_row
from pipeline.runs.result_files import Result, identity_of
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, write_json, write_text
from pipeline.workspace.tables import read_table


def empty_outputs() -> None:
    """Remove the tables, figures and metrics of the last page; called once the new ones can be written."""
    for folder in (layout.TABLES, layout.FIGURES, layout.all_metrics().parent):
        empty_folder(folder)


def write_page(order: ReportOrder, results: Mapping[str, Result], text: str) -> None:
    """Write a page, the gallery of its settings, and the identities of its runs."""
    write_text(layout.REPORT, text)
    write_gallery(order)
    identities = {row.id: identity_of(row, results[row.id]["training"]) for row in order.runs if row.id in results}
    write_json(layout.identities(), identities)


def table_if_any(path: Path) -> list[dict[str, str]]:
    """The rows of a table that another stage writes; none without the file."""
    return read_table(path) if path.is_file() else []


def papers_numbers(order: ReportOrder) -> list[dict[str, str]]:
    """The rows of the paper's numbers; none where params.yaml names no such file."""
    return read_table(layout.paper(order.paper)) if order.paper else []


def label_counts_of(setting: str) -> dict[int, LabelCounts]:
    """Seed -> client -> label -> how many training examples of the client have it; empty where none are drawn."""
    path = layout.clients_of(setting)
    content = read_json(path)["seeds"] if path.is_file() else {}
    return {int(seed): own["clients"] for seed, own in content.items()}


def write_gallery(order: ReportOrder) -> None:
    """Draw every setting at its first seed, and write the page."""
    shown = []
    for name, setting in order.settings.items():
        counts = next(iter(label_counts_of(name).values()), {})
        if not any(counts.values()):
            continue
        figure = f"federation-{name}"
        save(draw_gallery(counts, divergences(counts)), layout.FIGURES, figure)
        row = federation_row(name, counts)
        about = (
            f"{row['clients']} clients, {row['least']} to {row['most']} examples each (coefficient of variation "
            f"{row['cv']}); {row['divergence_bits']} bits apart on average."
        )
        drawn = [(letter, getattr(setting, knob, None)) for letter, knob in (("α", "alpha"), ("β", "beta"))]
        caption = ", ".join([name, *(f"{letter} = {value:g}" for letter, value in drawn if value)])
        shown.append((name, about, embedded(layout.FIGURES / f"{figure}.svg", f"{caption}.")))
    write_text(layout.GALLERY, page("gallery.html.j2", federations=shown))
