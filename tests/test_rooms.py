"""The rooms of the package: each imports from those below it, and no room is a heap."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from conftest import ROOT

PACKAGE = ROOT / "pipeline"
ROOMS = (
    *("errors", "workspace", "corpora", "clients", "model", "tasks", "federated", "engines", "evaluation", "plan"),
    *("runs", "report", "pages", "stages", "federation", "__main__"),
)
"""From the ground up."""
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """(Line, room) of every import of ours, at the top of a module, in a function, or for types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: an import says where it is from in full"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "pipeline" else [module]
        yield from ((node.lineno, name.split(".")[1]) for name in names if name.startswith("pipeline."))


def test_no_import_goes_up() -> None:
    """Every room has its place in the order: a new one is put there, and stays."""
    assert {room_of(path) for path in MODULES} == set(ROOMS)
    rank = ROOMS.index
    found = [(path, line, room) for path in MODULES for line, room in imports_of(path)]
    higher = [one for one in found if rank(one[2]) > rank(room_of(one[0]))]
    up = [f"{path.relative_to(ROOT)}:{line}: {room}" for path, line, room in higher]
    assert up == []


def test_what_is_no_module_is_packaged_too() -> None:
    """Templates, styles and what the paper says: an installed package lacks what pyproject does not name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    named = {path for pattern in settings["package-data"]["pipeline"] for path in PACKAGE.glob(pattern)}
    others = [p for p in PACKAGE.rglob("*") if p.is_file() and p.suffix != ".py" and "__pycache__" not in p.parts]
    assert sorted(str(path.relative_to(ROOT)) for path in set(others) - named) == []
