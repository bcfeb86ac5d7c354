"""The files that every page has: its tables, figures and metrics, the page, the gallery, and who the runs are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.pages.gallery import write_gallery
from pipeline.plan.orders import ReportOrder
from pipeline.runs.metrics import record_identities
from pipeline.runs.result_files import Result
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_text
from pipeline.workspace.tables import read_table


def empty_outputs() -> None:
    """Remove the tables, figures and metrics of the last page; called once the new ones can be written."""
    for folder in (layout.TABLES, layout.FIGURES, layout.all_metrics().parent):
        empty_folder(folder)


def write_page(order: ReportOrder, results: Mapping[str, Result], page: str) -> None:
    """Write a page, the gallery of its settings, and the identities of its runs."""
    write_text(layout.REPORT, page)
    write_gallery(order)
    record_identities(order.runs, results)


def table_if_any(path: Path) -> list[dict[str, str]]:
    """The rows of a table that another stage writes; none without the file."""
    return read_table(path) if path.is_file() else []


def papers_numbers(order: ReportOrder) -> list[dict[str, str]]:
    """The rows of the paper's numbers; none where params.yaml names no such file."""
    return read_table(layout.paper(order.paper)) if order.paper else []
