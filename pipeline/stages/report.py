"""results/ and comparisons.yaml -> the experiment's tables, figures, metrics and page."""

from __future__ import annotations

import importlib

from pipeline.plan.orders import ReportOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.progress import say


def run() -> None:
    """Render the page that params.yaml chooses."""
    order = read_order(layout.order("report"), ReportOrder)
    importlib.import_module(f"pipeline.pages.{order.page}").run(order)
    say(f"report: {layout.REPORT} is ready")
