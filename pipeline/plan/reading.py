"""How params.yaml is read: plain values, as DVC reads and writes them, so that `dvc exp run -S` changes one line.

A key that is null or missing has its value from the scale's row of `scales`, at any depth. A row of a table that is
`like` another has the keys that it lacks from that row.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarfloat import ScalarFloat
from ruamel.yaml.scalarint import ScalarInt
from ruamel.yaml.scalarstring import PlainScalarString, ScalarString

from pipeline.clients.setting import NAME
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json

TABLES = ("data", "settings", "runs")
"""The tables whose rows may be `like` another."""
MOST_BYTES = 1_000_000
BEYOND = 2**63
AMBIGUOUS = re.compile(r"yes|no|on|off", re.IGNORECASE)
"""Plain text that YAML 1.1 reads as a truth value."""
PLAIN = (str, int, float, bool, type(None))

Lines = dict[str, int]
"""Dotted key -> its line, from 1."""


def read_scales(path: Path) -> tuple[str, dict[str, Json]]:
    """The chosen scale, and each scale's keys: those of the file, filled in.

    Raises:
        QuorumError: the file cannot be read, has a value that is not plain, or its scale has no row.
    """
    data, lines = _read(path)
    for table in (*TABLES, "sections", "own"):
        for name in data.get(table) or () if isinstance(data.get(table), dict) else ():
            if not isinstance(name, str) or not re.match(NAME, name) or len(name) > 100:
                raise QuorumError(
                    f"{_at(path, lines, f'{table}.{name}')}: is no name; use letters, digits, '.', '_' and '-'"
                )
    chosen = data.get("scale")
    scales = data.pop("scales", None)
    rows = {chosen: {}} if scales is None else scales
    if not isinstance(rows, dict) or not all(isinstance(row, dict | None) for row in rows.values()):
        raise QuorumError(f"{_at(path, lines, 'scales')}: is no table of scales, each with its keys; correct it")
    if not isinstance(chosen, str) or chosen not in rows:
        raise QuorumError(f"{_at(path, lines, 'scale')}: {chosen!r}; known: {', '.join(map(str, rows))}; correct it")
    return chosen, {scale: _completed(path, lines, _over(row, data) | {"scale": scale}) for scale, row in rows.items()}


def read_plain(path: Path) -> Json:
    """A file's plain values.

    Raises:
        QuorumError: the file is missing, too large, not UTF-8, not YAML, or has a value that is not plain.
    """
    return _read(path)[0]


def located(path: Path, problem: str, scale: str = "") -> str:
    """A problem that begins with a dotted key, with the file and the line of the key.

    Args:
        scale: the row of `scales` that may have the key.
    """
    lines = _read(path)[1]
    keys = problem.partition(":")[0].split(".")
    for length in range(len(keys), 0, -1):
        key = ".".join(keys[:length])
        if line := lines.get(key) or lines.get(f"scales.{scale}.{key}"):
            return f"{path}: line {line}: {problem}"
    return f"{path}: {problem}"


def _at(path: Path, lines: Lines, key: str) -> str:
    return f"{path}: line {lines[key]}: {key}" if key in lines else f"{path}: {key}"


def _over(under: Any, data: Json) -> Json:
    """`data`, with missing and null keys filled in from `under`, at any depth."""
    found: Json = dict(data)
    for key, value in under.items() if isinstance(under, dict) else ():
        own = found.get(key)
        if own is None:
            found[key] = value
        elif isinstance(own, dict) and isinstance(value, dict):
            found[key] = _over(value, own)
    return found


def _completed(path: Path, lines: Lines, data: Json) -> Json:
    """The keys, with rows that are `like` others completed."""
    tables = {name: data[name] for name in TABLES if isinstance(data.get(name), dict)}
    return data | {
        where: {name: _like(path, lines, where, table, name, ()) for name in table} for where, table in tables.items()
    }


def _like(path: Path, lines: Lines, where: str, table: Json, name: str, above: tuple[str, ...]) -> Any:
    """A row with the keys that it lacks from the row that it is like; `above`: the rows that need it."""
    row = table[name]
    if not isinstance(row, dict) or "like" not in row:
        return row
    model, key = row["like"], f"{where}.{name}.like"
    others = [one for one in table if one not in (*above, name)]
    if model not in others:
        known = ", ".join(others) or "none"
        raise QuorumError(f"{_at(path, lines, key)}: no other row {model!r} in {where}; known: {known}; correct it")
    other = _like(path, lines, where, table, model, (*above, name))
    own = {one: value for one, value in row.items() if one != "like"}
    return {**other, **own} if isinstance(other, dict) else own


def _read(path: Path) -> tuple[Json, Lines]:
    """A file's plain values, and the line of each key.

    Raises:
        QuorumError: the file is missing, too large, not UTF-8, not YAML, or has a value that is not plain.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > MOST_BYTES:
            raise QuorumError(f"{path}: has more than {MOST_BYTES:,} characters; shorten it")
        content = yaml.load(text)
    except UnicodeDecodeError as error:
        raise QuorumError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; run from the repository's root") from None
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        problem = " ".join(str(getattr(error, "problem", error)).split())
        raise QuorumError(f"{path}: {where}cannot be read: {problem}; correct it") from None
    except (RecursionError, ValueError) as error:
        raise QuorumError(f"{path}: cannot be read: {str(error)[:80]}; shorten its numbers and levels") from None
    if not isinstance(content, CommentedMap):
        raise QuorumError(f"{path}: has no keys; restore it from git")
    lines: Lines = {}
    try:
        return _plain(content, "", lines), lines
    except ValueError as error:
        key = str(error).partition(":")[0]
        raise QuorumError(f"{_at(path, lines, key)}{str(error)[len(key) :]}") from None


def _plain(value: Any, where: str, lines: Lines) -> Any:
    """A value without the reader's own types; notes the lines of its keys.

    Raises:
        ValueError: some value is not plain; the message begins with its key.
    """
    if isinstance(value, CommentedMap | CommentedSeq):
        if value.yaml_anchor() is not None or getattr(value, "merge", None):
            raise ValueError(f"{where}: anchors and merge keys are not read; write the values, or `like: NAME`")
        if isinstance(value, CommentedMap):
            return {key: _below(value, key, where, lines) for key in value}
        return [_below(value, place, where, lines) for place in range(len(value))]
    if isinstance(value, ScalarFloat):
        return float(value)
    if type(value) is ScalarInt and not value:  # 0; other integers of this type begin with 0 or have underscores
        return 0
    quoted = isinstance(value, ScalarString) and not isinstance(value, PlainScalarString)
    if not quoted and (type(value) not in PLAIN or (type(value) is str and AMBIGUOUS.fullmatch(value))):
        raise ValueError(f"{where}: {value!s:.40}: is not plain; write a decimal number, true, false, or quoted text")
    if isinstance(value, int) and abs(value) >= BEYOND:
        raise ValueError(f"{where}: {str(value)[:20]} is beyond 64 bits; lower it")
    return str(value) if isinstance(value, str) else value


def _below(value: CommentedMap | CommentedSeq, key: Any, where: str, lines: Lines) -> Any:
    name = f"{where}.{key}" if where else str(key)
    at = value.lc.key(key) if isinstance(value, CommentedMap) else value.lc.item(key)
    lines[name] = at[0] + 1
    if isinstance(value, CommentedMap) and (not isinstance(key, str | int) or isinstance(key, bool | ScalarInt)):
        raise ValueError(f"{name}: is no plain key; write text or an integer")
    return _plain(value[key], name, lines)
