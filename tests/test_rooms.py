"""The rooms of the package: each imports from those below it, and no room is a heap."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "pipeline"

FLOORS: tuple[tuple[str, ...], ...] = (
    ("workspace", "errors"),
    ("corpora",),
    ("clients",),
    ("model",),
    ("tasks",),
    ("federated",),
    ("engines",),
    ("evaluation",),
    ("plan",),
    ("runs",),
    ("report",),
    ("pages",),
    ("stages",),
    ("federation",),
    ("__main__",),
)
"""From the ground up."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """(Line, module of ours) of every import, at the top of a module, in a function, or for types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: an import says where it is from in full"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "pipeline" else [module]
        yield from ((node.lineno, name) for name in names if name.startswith("pipeline."))


def test_every_room_has_a_floor() -> None:
    """A new one is put into the order here, and stands in it from then on."""
    assert {room_of(path) for path in MODULES} == set(FLOOR)


@pytest.mark.parametrize("room", sorted(FLOOR, key=lambda room: FLOOR[room]))
def test_no_import_goes_up(room: str) -> None:
    """Not within functions either, nor for types alone."""
    up = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in MODULES
        if room_of(path) == room
        for line, name in imports_of(path)
        if FLOOR[name.split(".")[1]] > FLOOR[room]
    ]
    assert up == []


def test_the_ground_of_all_knows_nothing() -> None:
    """What is wrong outside the code is said by an error."""
    assert list(imports_of(PACKAGE / "errors.py")) == []


def test_the_top_of_the_package_is_no_heap() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 8


@pytest.mark.parametrize("room", sorted({room for room in FLOOR if (PACKAGE / room).is_dir()}))
def test_a_room_says_what_it_is_for(room: str) -> None:
    """In the one sentence with which its package begins."""
    assert ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8")))


def test_what_is_no_module_is_packaged_too() -> None:
    """Templates, styles and what the paper says: an installed package lacks what pyproject does not name."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "package-data"
    ]
    others = [p for p in PACKAGE.rglob("*") if p.is_file() and p.suffix != ".py" and "__pycache__" not in p.parts]
    named = {path for pattern in patterns["pipeline"] for path in PACKAGE.glob(pattern)}
    assert sorted(str(path.relative_to(ROOT)) for path in set(others) - named) == []


def test_tests_have_names_of_their_own() -> None:
    """No two modules in different folders have one name: pytest imports them by it."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
