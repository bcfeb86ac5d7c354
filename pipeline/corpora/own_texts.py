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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.corpora.example import SPLITS, Example, Split
from pipeline.corpora.hash_order import tenths
from pipeline.corpora.iob import check_bio
from pipeline.corpora.labelled import Labelled, Question, Tagged, Titled
from pipeline.corpora.people_files import check_columns, rows_of, text_of
from pipeline.corpora.squad import check_answers
from pipeline.corpora.text import is_sound
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json

Common = tuple[str, Split, str, str]
"""Id, split, owner and group of a text."""


@dataclass(frozen=True)
class _Row:
    """A row of a file; `where` names its line."""

    where: str
    id: str
    cells: Json

    @property
    def group(self) -> str:
        return str(self.cells.get("group") or self.id)

    def text(self, column: str) -> str:
        value = self.cells.get(column)
        text = "" if value is None else str(value).strip()
        self._check_filled(column, text)
        return text

    def list(self, column: str) -> tuple[str, ...]:
        value = self.cells.get(column) or ""
        texts = tuple(map(str, value if isinstance(value, list) else str(value).split()))
        self._check_filled(column, texts)
        return texts

    def _check_filled(self, column: str, value: str | tuple[str, ...]) -> None:
        if not value:
            raise QuorumError(f"{self.where}: {column} is empty; fill it, or leave the row out")


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
    columns, make = KINDS[kind]
    rows = list(_rows(path, columns))
    if not rows:
        raise QuorumError(f"{path}: holds no row; give one example a row")
    check_columns(path, rows[0].cells, columns)
    texts: list[Example] = []
    for row, split in zip(rows, _splits(rows), strict=True):
        texts.append(make((row.id, split, str(row.cells.get("owner") or ""), row.group), row))
        if not is_sound(tuple(vars(texts[-1]).values())):
            raise QuorumError(f"{row.where}: has a NUL or half of a surrogate pair; remove it")
    _check_trained(rows, texts, classes)
    return texts


def _rows(path: Path, columns: Sequence[str]) -> Iterator[_Row]:
    lines = rows_of(path, columns) if path.suffix == ".csv" else _objects(path)
    for line, cells in lines:
        yield _Row(f"{path}: line {line}", f"{path.stem}/{line}", cells)


def _objects(path: Path) -> Iterator[tuple[int, Json]]:
    """(Line, object) of a JSONL file."""
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            try:
                yield number, dict(json.loads(line))
            except (ValueError, TypeError, RecursionError):
                raise QuorumError(f"{path}: line {number}: is no JSON object; write one example a line") from None


def _splits(rows: Sequence[_Row]) -> list[Split]:
    """The split of each row, by the column `split` or else by a fixed shuffle of groups."""
    if any("split" in row.cells for row in rows):
        for row in rows:
            if row.cells.get("split") not in SPLITS:
                raise QuorumError(f"{row.where}: split {row.cells.get('split')!r}: write {', '.join(SPLITS)}")
        return [row.cells["split"] for row in rows]
    by_group = tenths(sorted({row.group for row in rows}))
    return [by_group[row.group] for row in rows]


def _tagged(common: Common, row: _Row) -> Tagged:
    words, tags = row.list("words"), row.list("tags")
    if len(words) != len(tags):
        raise QuorumError(f"{row.where}: {len(words)} words and {len(tags)} tags; give one tag a word")
    check_bio(tags, row.where)
    return Tagged(*common, words, tags)


def _question(common: Common, row: _Row) -> Question:
    try:
        listed = row.cells.get("answers") or [(row.text("answer"), row.cells["answer_start"])]
        answers = tuple((str(text), int(start)) for text, start in listed)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise QuorumError(f"{row.where}: answer_start is no number; give the answer's first character") from None
    found = Question(*common, row.text("question"), str(row.cells.get("context") or ""), answers)
    check_answers(found, row.where)
    return found


KINDS: dict[type[Any], tuple[tuple[str, ...], Callable[[Common, _Row], Example]]] = {
    Labelled: (
        ("text", "label"),
        lambda common, row: Labelled(*common, " ".join(row.text("text").split()), row.text("label")),
    ),
    Tagged: (("words", "tags"), _tagged),
    Question: (("question", "context"), _question),
    Titled: (("text", "title"), lambda common, row: Titled(*common, row.text("text"), row.text("title"))),
}
"""Kind of a text -> the columns that it needs, and the function that makes it of a row."""


def _check_trained(
    rows: Sequence[_Row], texts: Sequence[Example], classes: Callable[[Sequence[Any]], Sequence[str]]
) -> None:
    """
    Raises:
        QuorumError: a group is in training and in the test, or no training text has a text's label, so that no model
            could learn it.
    """
    trained = {
        text.group: row.where.rpartition(": ")[2]
        for row, text in zip(rows, texts, strict=True)
        if text.split == "train"
    }
    known = set(classes([text for text in texts if text.split == "train"]))
    for row, text in zip(rows, texts, strict=True):
        if text.split == "test" and text.group in trained:
            raise QuorumError(
                f"{row.where}: group {text.group!r} is tested, and {trained[text.group]} trains on it; "
                "put all its rows into one split"
            )
        if strange := sorted(set(classes([text])) - known):
            raise QuorumError(
                f"{row.where} ({text.split}): no training example has the label {strange[0]!r}; add one, or leave the "
                "row out"
            )
