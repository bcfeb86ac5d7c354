"""Labelled texts from a user's CSV or JSONL file, one example a row.

| task | columns |
|---|---|
| classify | text, label |
| tag | words, tags: lists in JSONL, separated by spaces in CSV |
| answer | question, context, answer, answer_start; in JSONL also answers: [[text, start], …] |
| title | text, title |

The columns `split` (train, val, test), `owner` and `group` are optional. Without `split`, a fixed shuffle takes one
group of ten for validation, one for test and eight for training.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.corpora.example import SPLITS, Example, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.iob import check_bio
from pipeline.corpora.labelled import Labelled, Question, Tagged, Titled
from pipeline.corpora.people_csv import check_columns, rows_of
from pipeline.corpora.squad import check_answers
from pipeline.corpora.text import is_sound
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json

Row = Json
TENTH = 10


def read(
    path: Path,
    kind: type[Labelled] | type[Tagged] | type[Question] | type[Titled],
    classes: Callable[[Sequence[Any]], Sequence[str]] = lambda texts: (),
) -> list[Any]:
    """The texts of a file, in its order.

    Args:
        kind: the record of one text.
        classes: the labels that some texts have; a task that trains on them can predict these.

    Raises:
        QuorumError: the file is missing or neither CSV nor JSONL, lacks a column, or a row is wrong; names its line.
    """
    rows = _rows(path, COLUMNS[kind])
    if not rows:
        raise QuorumError(f"{path}: holds no row; give one example a row")
    check_columns(path, rows[0][1], COLUMNS[kind])
    splits = _splits(path, rows)
    texts = [_text_of(kind, path, line, row, splits[line]) for line, row in rows]
    _check_groups(path, [line for line, _ in rows], texts)
    _check_classes(path, [line for line, _ in rows], texts, classes)
    return texts


def _rows(path: Path, columns: Sequence[str]) -> list[tuple[int, Row]]:
    """(Line, row) of a file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise QuorumError(f"{path}: no such file; give a CSV or JSONL file, a row an example") from None
    except UnicodeDecodeError as error:
        raise QuorumError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    if path.suffix == ".csv":
        return list(rows_of(path, text, columns))
    found: list[tuple[int, Row]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found.append((number, dict(json.loads(line))))
            except (ValueError, TypeError, RecursionError):
                raise QuorumError(f"{path}: line {number}: is no JSON object; write one example a line") from None
    return found


def _splits(path: Path, rows: Sequence[tuple[int, Row]]) -> dict[int, Split]:
    """Line -> split, by the column `split` or else by a fixed shuffle of groups."""
    if any("split" in row for _, row in rows):
        for line, row in rows:
            if row.get("split") not in SPLITS:
                raise QuorumError(f"{path}: line {line}: split {row.get('split')!r}: write {', '.join(SPLITS)}")
        return {line: row["split"] for line, row in rows}
    groups = {line: str(row.get("group") or f"{path.stem}/{line}") for line, row in rows}
    order = hash_order(sorted(set(groups.values())))
    count = max(1, len(order) // TENTH)
    of: dict[str, Split] = dict.fromkeys(order, "train")
    of.update(dict.fromkeys(order[:count], "test"))
    of.update(dict.fromkeys(order[count : 2 * count], "val"))
    return {line: of[group] for line, group in groups.items()}


def _text_of(kind: type[Any], path: Path, line: int, row: Row, split: Split) -> Example:
    where = f"{path}: line {line}"
    identity = f"{path.stem}/{line}"
    common = (identity, split, str(row.get("owner") or ""), str(row.get("group") or identity))
    text: Example = MAKE[kind](common, row, where)
    if not all(map(is_sound, _strings(tuple(vars(text).values())))):
        raise QuorumError(f"{where}: has a NUL or half of a surrogate pair; remove it")
    return text


def _strings(value: Any) -> Iterator[str]:
    """All texts in nested tuples."""
    for one in value if isinstance(value, tuple) else ():
        yield from _strings(one)
    if isinstance(value, str):
        yield value


def _word(row: Row, column: str, where: str) -> str:
    value = str(row.get(column) if row.get(column) is not None else "").strip()
    if not value:
        raise QuorumError(f"{where}: {column} is empty; fill it, or leave the row out")
    return value


def _list(row: Row, column: str, where: str) -> tuple[str, ...]:
    value = row.get(column) or ""
    found = tuple(map(str, value)) if isinstance(value, list) else tuple(str(value).split())
    if not found:
        raise QuorumError(f"{where}: {column} is empty; fill it, or leave the row out")
    return found


def _labelled(common: tuple[str, Split, str, str], row: Row, where: str) -> Labelled:
    return Labelled(*common, " ".join(_word(row, "text", where).split()), _word(row, "label", where))


def _tagged(common: tuple[str, Split, str, str], row: Row, where: str) -> Tagged:
    words, tags = _list(row, "words", where), _list(row, "tags", where)
    if len(words) != len(tags):
        raise QuorumError(f"{where}: {len(words)} words and {len(tags)} tags; give one tag a word")
    check_bio(tags, where)
    return Tagged(*common, words, tags)


def _question(common: tuple[str, Split, str, str], row: Row, where: str) -> Question:
    question, context = _word(row, "question", where), str(row.get("context") or "")
    try:
        answers = tuple((str(text), int(start)) for text, start in row["answers"]) if row.get("answers") else ()
        answers = answers or ((_word(row, "answer", where), int(row["answer_start"])),)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise QuorumError(f"{where}: answer_start is no number; give the answer's first character") from None
    found = Question(*common, question, context, answers)
    check_answers(found, where)
    return found


def _titled(common: tuple[str, Split, str, str], row: Row, where: str) -> Titled:
    return Titled(*common, _word(row, "text", where), _word(row, "title", where))


COLUMNS: dict[type[Any], tuple[str, ...]] = {
    Labelled: ("text", "label"),
    Tagged: ("words", "tags"),
    Question: ("question", "context"),
    Titled: ("text", "title"),
}
MAKE: dict[type[Any], Callable[[tuple[str, Split, str, str], Row, str], Example]] = {
    Labelled: _labelled,
    Tagged: _tagged,
    Question: _question,
    Titled: _titled,
}


def _check_groups(path: Path, lines: Sequence[int], texts: Sequence[Example]) -> None:
    """Check that no group is in training and in the test.

    Raises:
        QuorumError: one is; names both lines.
    """
    trained = {text.group: line for line, text in zip(lines, texts, strict=True) if text.split == "train"}
    for line, text in zip(lines, texts, strict=True):
        if text.split == "test" and text.group in trained:
            raise QuorumError(
                f"{path}: line {line}: group {text.group!r} is tested, and line {trained[text.group]} trains on it; "
                "put all its rows into one split"
            )


def _check_classes(
    path: Path, lines: Sequence[int], texts: Sequence[Example], classes: Callable[[Sequence[Any]], Sequence[str]]
) -> None:
    """Check that training texts have all labels: no model could learn another.

    Raises:
        QuorumError: a text has a label that no training text has.
    """
    known = set(classes([text for text in texts if text.split == "train"]))
    for line, text in zip(lines, texts, strict=True):
        strange = sorted(set(classes([text])) - known)
        if strange:
            raise QuorumError(
                f"{path}: line {line} ({text.split}): no training example has the label "
                f"{strange[0]!r}; add one, or leave the row out"
            )
