"""An organisation's folder of meetings, in whatever formats it has them, with summaries beside them.

`NAME.summary.txt` is a summary of the whole of NAME. A CSV file has more: a row a summary, with the columns file,
query, summary, and turns, which is `A-B` counted from 1, or empty for the whole meeting. QMSum's JSON has its queries
itself.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.corpora.example import SPLITS
from pipeline.corpora.qmsum import Meeting, Query, parse_meeting
from pipeline.corpora.transcripts import READERS, read_transcript, text_of
from pipeline.errors import QuorumError
from pipeline.workspace.words import WHOLE

SUMMARY = ".summary.txt"

COLUMNS = ("file", "query", "summary", "turns")


@dataclass(frozen=True)
class Checked:
    """One file, and what it holds; or what is wrong with it, and where."""

    path: Path
    meeting: Meeting | None
    wrong: str = ""

    def to_row(self) -> dict[str, Any]:
        meeting = self.meeting
        if meeting is None:
            return {"file": self.path.name, "format": self.path.suffix[1:], "wrong": self.wrong}
        return {
            "file": self.path.name,
            "format": self.path.suffix[1:],
            "turns": len(meeting.turns),
            "speakers": len({turn.speaker for turn in meeting.turns}),
            "words": sum(len(turn.text.split()) for turn in meeting.turns),
            "queries": len(meeting.queries),
            "wrong": self.wrong or ("" if meeting.queries else "no summary beside it, so it cannot train"),
        }


def meeting_files(folder: Path) -> list[Path]:
    """Files of meetings, by name.

    Raises:
        QuorumError: two files are one meeting's: they would have one name.
    """
    found = sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.suffix.lower() in READERS and not path.name.endswith(SUMMARY)
    )
    names: dict[str, Path] = {}
    for path in found:
        if path.stem in names:
            raise QuorumError(f"{path}: {names[path.stem].name} has the same name; remove or rename one of them")
        names[path.stem] = path
    return found


def read_meeting(path: Path) -> Meeting:
    """A meeting with the summaries that lie beside it.

    Raises:
        QuorumError: the meeting or what lies beside it is malformed.
    """
    if path.suffix.lower() == ".json":
        meeting = parse_meeting(path)
    else:
        meeting = Meeting(path.stem, tuple(read_transcript(path)), ())
    beside = path.with_name(path.stem + SUMMARY)
    queries = list(meeting.queries)
    if beside.is_file():
        text = " ".join(text_of(beside).split())
        if not text:
            raise QuorumError(f"{beside}: is empty; write the summary, or remove the file")
        queries.append(_query(WHOLE, text, (0, len(meeting.turns) - 1)))
    for number, row in _rows(path.parent):
        if row["file"] == path.name:
            queries.append(_of_row(row, f"{number[0]}: line {number[1]}", len(meeting.turns)))
    return replace(meeting, queries=tuple(queries))


def check(folder: Path) -> list[Checked]:
    """Every meeting of a folder, read as training would; what is wrong with one does not hide the others.

    Meetings may lie in folders of it that are called as splits.

    Raises:
        QuorumError: there is no such folder, or it holds no meeting.
    """
    if not folder.is_dir():
        raise QuorumError(f"{folder}: is no folder; give the one that holds the meetings")
    if splits := [folder / split for split in SPLITS if (folder / split).is_dir()]:
        return [one for split in splits for one in check(split)]
    paths = meeting_files(folder)
    if not paths:
        raise QuorumError(f"{folder}: holds no meeting; lay {', '.join(READERS)} files there")
    known = {path.name for path in paths}
    found = [_checked(path) for path in paths]
    for (table, line), row in _rows(folder):
        if row["file"] not in known:
            found.append(Checked(table, None, f"line {line}: {row['file']!r} is no meeting of this folder"))
    return found


def _checked(path: Path) -> Checked:
    try:
        return Checked(path, read_meeting(path))
    except QuorumError as error:
        return Checked(path, None, str(error).removeprefix(f"{path}: "))


def _rows(folder: Path) -> Iterator[tuple[tuple[Path, int], Mapping[str, str]]]:
    """((file, line), row) of every CSV in a folder."""
    for path in sorted(folder.glob("*.csv")):
        reader = csv.DictReader(text_of(path).splitlines(keepends=True))
        missing = [column for column in COLUMNS[:3] if column not in (reader.fieldnames or ())]
        if missing:
            raise QuorumError(f"{path}: has no column {missing[0]!r}; it needs {', '.join(COLUMNS)}")
        for row in reader:
            yield (path, reader.line_num), row


def _of_row(row: Mapping[str, str], where: str, count: int) -> Query:
    query, summary = (" ".join((row.get(column) or "").split()) for column in ("query", "summary"))
    if not summary:
        raise QuorumError(f"{where}: summary is empty; write it, or remove the row")
    turns = (row.get("turns") or "").strip()
    match = re.fullmatch(r"(\d+)\s*-\s*(\d+)", turns) if turns else None
    if turns and (match is None or not 1 <= int(match[1]) <= int(match[2]) <= count):
        raise QuorumError(f"{where}: turns {turns!r}: give A-B with 1 <= A <= B <= {count}, the number of turns")
    span = (int(match[1]) - 1, int(match[2]) - 1) if match else (0, count - 1)
    return _query(query or WHOLE, summary, span)


def _query(query: str, answer: str, span: tuple[int, int]) -> Query:
    return Query(query=query, answer=answer, relevant_text_span=(span,))


def to_json(meeting: Meeting) -> dict[str, Any]:
    """The meeting in QMSum's schema."""
    return {
        "meeting_transcripts": [{"speaker": turn.speaker, "content": turn.text} for turn in meeting.turns],
        "specific_query_list": [
            {"query": one.query, "answer": one.answer, "relevant_text_span": [list(span) for span in one.spans]}
            for one in meeting.queries
        ],
    }
