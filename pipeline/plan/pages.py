"""The pages that an experiment can have: the module of each, and the files behind it that are no code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.plan.code import code_of
from pipeline.workspace.files import sha256_file

TEMPLATES = Path(__file__).parents[1] / "report" / "templates"
STYLE = ("base.html.j2", "pieces.html.j2", "gallery.html.j2", "page.css")

PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "main": ("pipeline.pages.main", ("main_page.html.j2",)),
    "tour": ("pipeline.pages.tour", ("tour_page.html.j2",)),
    "paper": ("pipeline.pages.paper", ("paper_page.html.j2", "../paper.yaml")),
    "tasks": ("pipeline.pages.tasks", ("task_page.html.j2",)),
    "faults": ("pipeline.pages.faults", ("faults_page.html.j2",)),
}
"""Page -> its module, which has `run`, and its templates."""


def code_of_page(page: str, tasks: Sequence[str]) -> dict[str, str]:
    """Hashes of the modules and files behind a page, by name."""
    module, files = PAGES[page]
    code = code_of("pipeline.stages.report", module, *tasks, parts=("metrics",))
    return code | {name: sha256_file(TEMPLATES / name) for name in (*files, *STYLE)}


def is_called_after(run: str, setting: str) -> bool:
    """Whether a run's name begins with its setting's, by which the setting's table of methods finds it.

    >>> is_called_after("tc-fedavg", "tc"), is_called_after("tc-1-fedavg", "tc-1"), is_called_after("averaged", "tc")
    (True, True, False)
    """
    return run.startswith(f"{setting}-")
