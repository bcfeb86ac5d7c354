"""results/ and comparisons.yaml -> the experiment's tables, figures, metrics and page."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.plan.orders import ReportOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import copy_tree, empty_folder
from pipeline.workspace.progress import say


def run() -> None:
    """Render the page that params.yaml chooses; if that fails, the tables, figures and metrics stay as they were."""
    order = read_order(layout.order("report"), ReportOrder)
    with _restoring(layout.TABLES, layout.FIGURES, layout.all_metrics().parent):
        importlib.import_module(f"pipeline.pages.{order.page}").run(order)
    say(f"report: {layout.REPORT} is ready")


@contextmanager
def _restoring(*folders: Path) -> Iterator[None]:
    """Bring folders back as they were if the block fails."""
    with TemporaryDirectory() as copies:
        copied = {folder: Path(copies, str(place)) for place, folder in enumerate(folders) if folder.is_dir()}
        for folder, copy in copied.items():
            copy_tree(folder, copy)
        try:
            yield
        except BaseException:
            for folder, copy in copied.items():
                empty_folder(folder)
                copy_tree(copy, folder)
            raise
