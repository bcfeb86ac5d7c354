"""What raters send back, checked and joined with the key that tells whose summary was on which side."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, StringConstraints, ValidationError

from pipeline.errors import QuorumError
from pipeline.evaluation.agreement import Outcome
from pipeline.federated.methods import OURS
from pipeline.report.ratings.sheets import CRITERIA
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import first_problem
from pipeline.workspace.tables import read_table, write_table

CHOICES = ("A", "B", "tie")
COLUMNS = ("sheet", "rater", "item", "client", "meeting", "example", "against", "texts", "criterion", "outcome")


def bring_in(files: Sequence[Path]) -> int:
    """Check raters' files (JSON from the page, or the filled CSV) and join them into data/ratings/ratings.csv.

    A sheet that is there already is replaced, and that is told: it is one rater's, under whatever name. Returns how
    many ratings there are now.

    Raises:
        QuorumError: a file is no such sheet, names an unknown item or choice, or rates a pair twice; or another of the
            files is the same sheet, or its rater has rated the pairs on another sheet.
    """
    path = layout.ratings_table()
    kept = read_table(path) if path.is_file() else []
    came: dict[str, Path] = {}
    told: list[str] = []
    for file in files:
        rows = _read(file)
        sheets = {row["sheet"] for row in rows}
        if twice := sheets & came.keys():
            raise QuorumError(
                f"{file}: is the same sheet as {came[twice.pop()]}, and a sheet is one rater's: import one"
            )
        came |= dict.fromkeys(sheets, file)
        former = [row for row in kept if row["sheet"] in sheets]
        if former:
            told.append(f"ratings: {file} took the place of what {former[0]['rater']} gave on the same sheet")
        kept = [row for row in kept if row["sheet"] not in sheets]
        _check_rater(rows, kept, file)
        kept += rows
    write_table(path, kept, COLUMNS)
    for line in told:
        say(line)
    raters = len({row["rater"] for row in kept})
    say(f"ratings: {len(kept)} ratings by {raters} raters in {path}; `dvc repro report` draws them")
    return len(kept)


def _check_rater(rows: Sequence[Mapping[str, str]], others: Sequence[Mapping[str, str]], file: Path) -> None:
    """All sheets have the same pairs: one person's word on two of them would count as two raters'."""
    rated = {(row["rater"], row["item"]) for row in others}
    again = next((row for row in rows if (row["rater"], row["item"]) in rated), None)
    if again is not None:
        raise QuorumError(
            f"{file}: {again['rater']} has rated item {again['item']} on another sheet; keep one sheet a rater, or "
            "enter another name if it is another person"
        )


def _read(file: Path) -> list[dict[str, str]]:
    answers = _answers_of_csv(file) if file.suffix.lower() == ".csv" else _answers_of_json(file)
    rows: list[dict[str, str]] = []
    seen: set[tuple[str, str]] = set()
    for sheet, rater, item, criterion, choice in answers:
        keys = _key(sheet, file)
        if item not in keys:
            raise QuorumError(f"{file}: item {item!r} is not on sheet {sheet}; import the file as the page exported it")
        if criterion not in CRITERIA or choice not in CHOICES:
            raise QuorumError(f"{file}: item {item}: {criterion!r} = {choice!r}; choices are {', '.join(CHOICES)}")
        if (item, criterion) in seen:
            raise QuorumError(f"{file}: item {item} is rated twice on {criterion}; keep one")
        seen.add((item, criterion))
        key = keys[item]
        against = key["B"] if key["A"] == OURS else key["A"]
        outcome: Outcome = "tie" if choice == "tie" else "win" if key[choice] == OURS else "loss"
        subject = {name: key[name] for name in ("client", "meeting", "example", "texts")}
        row = {"sheet": sheet, "rater": rater, "item": item, "against": against, "outcome": outcome} | subject
        rows.append(row | {"criterion": criterion})
    if not rows:
        raise QuorumError(f"{file}: holds no rating; rate at least one pair")
    return rows


def _key(sheet: str, file: Path) -> dict[str, dict[str, str]]:
    path = layout.rating_key(sheet)
    if not sheet.isalnum() or not path.is_file():
        raise QuorumError(f"{file}: sheet {sheet!r} has no key in {path.parent}; import it where it was exported")
    keys: dict[str, dict[str, str]] = read_json(path)
    return keys


Answers = Iterable[tuple[str, str, str, str, str]]
"""(sheet, rater, item, criterion, choice)."""


class Exported(BaseModel):
    """What the page exports: item -> criterion -> choice."""

    sheet: str
    rater: Annotated[str, StringConstraints(strip_whitespace=True)]
    answers: dict[str, dict[str, str]]


def _answers_of_json(file: Path) -> Answers:
    try:
        given = Exported.model_validate_json(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise QuorumError(f"{file}: not UTF-8 (byte {error.start}); export again") from None
    except ValidationError as error:
        raise QuorumError(
            f"{file}: not ratings as the page exports them ({first_problem(error)}); export again"
        ) from None
    if not given.rater:
        raise QuorumError(f"{file}: names no rater, and two of these would count as two; enter a name and export again")
    return [
        (given.sheet, given.rater, item, criterion, choice)
        for item, chosen in given.answers.items()
        for criterion, choice in chosen.items()
    ]


def _answers_of_csv(file: Path) -> Answers:
    csv.field_size_limit(sys.maxsize)  # a transcript is one cell
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            semicolons = ";" in stream.readline()  # as spreadsheets of half of Europe have it
            stream.seek(0)
            reader = csv.DictReader(stream, restval="", delimiter=";" if semicolons else ",")
            rows, columns = list(reader), reader.fieldnames or ()
    except (UnicodeDecodeError, csv.Error) as error:
        raise QuorumError(f"{file}: not a filled sheet ({error}); save it as CSV in UTF-8") from None
    lacking = [column for column in ("sheet", "item", *CRITERIA) if column not in columns]
    if lacking:
        raise QuorumError(f"{file}: has no column {lacking[0]!r}; keep a sheet's columns as they are")
    return [
        (row["sheet"].strip(), file.stem, row["item"].strip(), criterion, row[criterion].strip())
        for row in rows
        for criterion in CRITERIA
        if row[criterion].strip()
    ]
