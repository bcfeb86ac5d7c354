"""How params.yaml is read: plain values, as DVC reads and writes them, so that `dvc exp run -S` changes one line.

A key that is null or missing has its value from the scale's row of `scales`, at any depth. A row of a table that is
`like` another has the keys that it lacks from that row. A problem is a ValueError that begins with its dotted key.
"""

import re
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from pipeline.clients.setting import NAME
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json

TABLES = ("data", "settings", "runs")  # the tables whose rows may be `like` another
MOST_BYTES = 1_000_000
NOT_PLAIN = re.compile(r"(?i)yes|no|on|off|[-+]?0(\d+|x[\da-f]+|o[0-7]+)|[-+]?\d+_[\d_]*|\d{4}-\d\d-\d\d|[-+]?\d{19,}")
"""Unquoted text that YAML 1.1 reads as a truth value, and numbers of other bases, dates, and what exceeds 64 bits."""

Lines = dict[str, int]  # dotted key -> its line, from 1


def read_scales(path: Path) -> tuple[str, dict[str, Json], Lines]:
    """The chosen scale, each scale's keys, which are those of the file, filled in, and the file's lines.

    Raises QuorumError if the file cannot be read, has a value that is not plain, or its scale has no row.
    """
    data, lines = read_plain(path)
    try:
        return *_scales(data), lines
    except ValueError as error:
        raise QuorumError(located(path, lines, str(error))) from None


def located(path: Path, lines: Lines, problem: str, scale: str = "") -> str:
    """A problem that begins with a dotted key of the file, or of its row for a scale, with the line of the key."""
    keys = problem.partition(":")[0].split(".")
    for key in (".".join(keys[:length]) for length in range(len(keys), 0, -1)):
        if line := lines.get(key) or lines.get(f"scales.{scale}.{key}"):
            return f"{path}: line {line}: {problem}"
    return f"{path}: {problem}"


def _scales(data: Json) -> tuple[str, dict[str, Json]]:
    for table in (*TABLES, "sections", "own"):
        named = data.get(table)
        for name in named if isinstance(named, dict) else ():
            if not isinstance(name, str) or not re.match(NAME, name) or len(name) > 100:
                raise ValueError(f"{table}.{name}: is no name; use letters a-z, digits, '.', '_' and '-'")
    chosen, rows = data.get("scale"), data.pop("scales", None)
    if not isinstance(chosen, str):
        raise ValueError(f"scale: {chosen!r} is no name; correct it")
    if rows is None:
        rows = {chosen: {}}
    if not isinstance(rows, dict) or not all(isinstance(row, dict | None) for row in rows.values()):
        raise ValueError("scales: is no table of scales, each with its keys; correct it")
    if chosen not in rows:
        raise ValueError(f"scale: {chosen!r}; known: {', '.join(map(str, rows))}; correct it")
    return chosen, {scale: _completed(_over(row or {}, data) | {"scale": scale}) for scale, row in rows.items()}


def _over(under: Json, data: Json) -> Json:
    """`data`, with missing and null keys filled in from `under`, at any depth."""
    found: Json = dict(data)
    for key, value in under.items():
        own = found.get(key)
        if own is None:
            found[key] = value
        elif isinstance(own, dict) and isinstance(value, dict):
            found[key] = _over(value, own)
    return found


def _completed(data: Json) -> Json:
    """The keys, with rows that are `like` others completed."""
    tables = {name: data[name] for name in TABLES if isinstance(data.get(name), dict)}
    return data | {where: {name: _like(where, table, name, ()) for name in table} for where, table in tables.items()}


def _like(where: str, table: Json, name: str, above: tuple[str, ...]) -> object:
    """A row with the keys that it lacks from the row that it is like; `above`: the rows that need it."""
    row = table[name]
    if not isinstance(row, dict) or "like" not in row:
        return row
    others = [one for one in table if one not in (*above, name)]
    if row["like"] not in others:
        known = ", ".join(others) or "none"
        raise ValueError(f"{where}.{name}.like: no other row {row['like']!r} in {where}; known: {known}; correct it")
    other = _like(where, table, row["like"], (*above, name))
    own = {key: value for key, value in row.items() if key != "like"}
    return {**other, **own} if isinstance(other, dict) else own


def read_plain(path: Path, remedy: str = "run from the repository's root") -> tuple[Json, Lines]:
    """A file's plain values, and the line of each key; `remedy`: where it is missing.

    Raises QuorumError if the file is missing, too large, not UTF-8, not YAML, or has a value that is not plain.
    """
    lines: Lines = {}
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > MOST_BYTES:
            raise QuorumError(f"{path}: has more than {MOST_BYTES:,} characters; shorten it")
        root = YAML(typ="safe").compose(text)
        if not isinstance(root, MappingNode):
            raise QuorumError(f"{path}: has no keys; restore it from git")
        _note_lines(root, "", lines, set())
        return YAML(typ="safe").load(text), lines
    except UnicodeDecodeError as error:
        raise QuorumError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; {remedy}") from None
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        problem = " ".join(str(getattr(error, "problem", error)).split())
        raise QuorumError(f"{path}: {where}cannot be read: {problem}; correct it") from None
    except RecursionError:
        raise QuorumError(f"{path}: cannot be read: has too many levels; shorten it") from None
    except ValueError as error:
        raise QuorumError(located(path, lines, str(error))) from None


def _note_lines(node: Node, where: str, lines: Lines, seen: set[int]) -> None:
    """Note the line of each key, and check that all values are plain; an alias is a node that has been seen."""
    if id(node) in seen or str(node.tag).endswith(":merge"):
        raise ValueError(f"{where}: anchors and merge keys are not read; write the values, or `like: NAME`")
    seen.add(id(node))
    if isinstance(node, MappingNode):
        for key, value in node.value:
            name = f"{where}.{key.value}".removeprefix(".")
            lines[name] = key.start_mark.line + 1
            _note_lines(key, name, lines, seen)
            _note_lines(value, name, lines, seen)
    elif not isinstance(node, ScalarNode):
        for item in node.value:
            _note_lines(item, where, lines, seen)
    elif not node.style and NOT_PLAIN.fullmatch(node.value):
        found = f"{node.value:.40}: is not plain"
        raise ValueError(f"{where}: {found}; write a decimal number, true, false, or quoted text")
