"""What the page of an experiment on labelled texts depends on, and which tables it has."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pipeline.plan.code import code_of
from pipeline.plan.text_orders import is_called_after
from pipeline.plan.texts import TABLES, TextParams
from pipeline.workspace.files import sha256_file

STYLE = ("templates/base.html.j2", "templates/pieces.html.j2", "templates/page.css")


class Page(NamedTuple):
    """The stage that makes a page, and the files behind it that are no code."""

    stage: str
    files: tuple[str, ...]


PAGES = {
    "fednlp": Page(
        "pipeline.stages.text_page",
        ("templates/texts_page.html.j2", "templates/gallery.html.j2", *STYLE),
    ),
    "faults": Page("pipeline.stages.faults_page", ("templates/faults_page.html.j2", *STYLE)),
}
REPORT = Path(__file__).parents[1] / "report"


def code_of_page(page: str) -> dict[str, str]:
    """Hashes of the modules and files behind a page, by name."""
    return code_of(PAGES[page].stage) | {name: sha256_file(REPORT / name) for name in PAGES[page].files}


def unshown(params: TextParams) -> dict[str, str]:
    """Run of this scale that no table of FedNLP's page shows -> how to show it."""
    if params.page != "fednlp":
        return {}
    tables = tables_of(params)
    named = {run for table, runs in tables.items() if table != "methods" for run in runs}
    found = {}
    for name in params.runs_of_scale:
        setting = params.runs[name].setting
        missing = [] if setting in tables["methods"] else [f"name {setting} in tables.methods"]
        missing += [] if is_called_after(name, setting) else [f"call it {setting}-…"]
        if missing and name not in named:
            found[name] = f"{' and '.join(missing)}, or name it in another table"
    return found


def tables_of(params: TextParams) -> dict[str, list[str]]:
    """Table -> its runs or settings; a table of methods for every setting, unless the file lists tables."""
    if params.page != "fednlp":
        return params.tables
    used = [name for name in params.settings if any(params.runs[run].setting == name for run in params.runs_of_scale)]
    return {table: [] for table in TABLES} | {"methods": used} | params.tables
