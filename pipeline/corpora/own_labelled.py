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

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from pipeline.corpora.documents import Document, own_documents
from pipeline.corpora.example import SPLITS, Example, Kind
from pipeline.corpora.hash_order import tenths
from pipeline.corpora.labelled import Labelled, Question, Tagged, Titled
from pipeline.corpora.people_files import check_columns, rows_of, text_of
from pipeline.corpora.text import is_sound
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json


def read(path: Path, kind: type[Kind], classes: Callable[[Sequence[Kind]], Sequence[str]] = lambda _: ()) -> list[Kind]:
    """The texts of a file, in its order, or the documents of a folder.

    Args:
        kind: the record of one text.
        classes: the labels that some texts have; a task that trains on them can predict these.

    Raises QuorumError if the file is missing or neither CSV nor JSONL, lacks a column, or a row is wrong; names its
    line.
    """
    if kind is Document:
        return own_documents(path)  # type: ignore[return-value]
    columns, adapter = COLUMNS[kind], TypeAdapter(kind)
    needed = [column for column in columns if column != "answers"]
    rows = list(rows_of(path, needed) if path.suffix == ".csv" else _objects(path))
    if not rows:
        raise QuorumError(f"{path}: holds no row; give one example a row")
    check_columns(path, rows[0][1], needed)
    groups = [str(cells.get("group") or f"{path.stem}/{line}") for line, cells in rows]
    is_split = any("split" in cells for _, cells in rows)
    written = [str(cells.get("text") or cells.get("context") or cells.get("words") or "") for _, cells in rows]
    splits = {} if is_split else tenths(sorted(set(groups)), zip(groups, written, strict=True))
    texts: dict[int, Kind] = {}
    for (line, cells), group in zip(rows, groups, strict=True):
        try:
            split = cells.get("split") if is_split else splits[group]
            if split not in SPLITS:
                raise ValueError(f"split {split!r}: write {', '.join(SPLITS)}")
            fields = {"id": f"{path.stem}/{line}", "split": split, "owner": str(cells.get("owner") or "")}
            fields |= {"group": group} | {column: value_of(cells, column) for column, value_of in columns.items()}
            if not is_sound(tuple(fields.values())):
                raise ValueError("has a NUL or half of a surrogate pair; remove it")
        except ValueError as error:
            raise QuorumError(f"{path}: line {line}: {error}") from None
        texts[line] = adapter.validate_python(fields)
    _check_trained(path, texts, classes)
    return list(texts.values())


def _objects(path: Path) -> Iterator[tuple[int, Json]]:
    """(Line, object) of a JSONL file."""
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            try:
                yield number, dict(json.loads(line))
            except (ValueError, TypeError, RecursionError):
                raise QuorumError(f"{path}: line {number}: is no JSON object; write one example a line") from None


def _text(cells: Json, column: str) -> str:
    text = "" if cells.get(column) is None else str(cells[column]).strip()
    if not text:
        raise ValueError(f"{column} is empty; fill it, or leave the row out")
    return text


def _line(cells: Json, column: str) -> str:
    return " ".join(_text(cells, column).split())


def _words(cells: Json, column: str) -> tuple[str, ...]:
    words = cells.get(column) or None
    return tuple(map(str, words)) if isinstance(words, list) else tuple(_text({column: words}, column).split())


def _tags(cells: Json, column: str) -> tuple[str, ...]:
    """A tag a word, each O, B-X, or I-X after a B-X or I-X."""
    words, tags, before = _words(cells, "words"), _words(cells, column), ""
    if len(words) != len(tags):
        raise ValueError(f"{len(words)} words and {len(tags)} tags; give one tag a word")
    for number, tag in enumerate(tags, 1):
        if tag != "O" and not (tag[:2] in ("B-", "I-") and len(tag) > 2):
            raise ValueError(f"tag {number}, {tag!r}: is not BIO; write O, B-TYPE or I-TYPE")
        if tag[0] == "I" and before[2:] != tag[2:]:
            found = f"follows {before!r}" if before else "begins the sentence"
            raise ValueError(f"tag {number}, {tag!r}: {found}; begin each span with B-{tag[2:]}")
        before = tag
    return tags


def _context(cells: Json, column: str) -> str:
    return str(cells.get(column) or "")


def _answers(cells: Json, column: str) -> tuple[tuple[str, int], ...]:
    """Answers, each with the character of the context at which it begins."""
    try:
        listed = cells.get(column) or [(str(cells.get("answer", "")).strip(), cells.get("answer_start"))]
        answers = tuple((str(text), int(start)) for text, start in listed)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("answer_start is no number; give the answer's first character") from None
    for text, start in answers:
        if not text or start < 0 or not _context(cells, "context").startswith(text, start):
            wrong = f"the answer {text!r} does not lie in its context at character {start}"
            raise ValueError(f"{wrong}; correct `answer_start`")
    return answers


COLUMNS: dict[type[Example], Mapping[str, Callable[[Json, str], object]]] = {
    Labelled: {"text": _line, "label": _text},
    Tagged: {"words": _words, "tags": _tags},
    Question: {"question": _text, "context": _context, "answers": _answers},
    Titled: {"text": _text, "title": _text},
}
"""Kind of a text -> its columns, and the function that reads a row's cell. `answers` may be two other columns."""


def _check_trained(path: Path, texts: Mapping[int, Kind], classes: Callable[[Sequence[Kind]], Sequence[str]]) -> None:
    """Check the texts of a file, by line.

    Raises QuorumError if a group is in training and in the test, or no training text has a text's label, so that no
    model could learn it.
    """
    trained = {text.group: line for line, text in texts.items() if text.split == "train"}
    known = set(classes([text for text in texts.values() if text.split == "train"]))
    for line, text in texts.items():
        if text.split == "test" and text.group in trained:
            wrong = f"group {text.group!r} is tested, and line {trained[text.group]} trains on it"
            raise QuorumError(f"{path}: line {line}: {wrong}; put all its rows into one split")
        if strange := sorted(set(classes([text])) - known):
            wrong = f"no training example has the label {strange[0]!r}"
            raise QuorumError(f"{path}: line {line} ({text.split}): {wrong}; add one, or leave the row out")
