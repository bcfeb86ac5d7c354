"""An organisation's folder of meetings in any format that `transcripts` reads, with their summaries.

`NAME.summary.txt` is a summary of the meeting NAME. A CSV file has one summary a row, with the columns file, query,
summary and turns: `A-B`, counted from 1, or empty for the entire meeting. QMSum's JSON contains its queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.corpora.example import SPLITS
from pipeline.corpora.people_csv import rows_of
from pipeline.corpora.qmsum import Meeting, Query, parse_meeting
from pipeline.corpora.transcripts import READERS, read_transcript, text_of
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json
from pipeline.workspace.words import WHOLE

SUMMARY = ".summary.txt"

COLUMNS = ("file", "query", "summary", "turns")


@dataclass(frozen=True)
class Checked:
    """One file and its meeting, or what is wrong with it and where."""

    path: Path
    meeting: Meeting | None
    wrong: str = ""

    def to_row(self) -> Json:
        meeting = self.meeting
        if meeting is None:
            return {"file": self.path.name, "format": self.path.suffix[1:], "wrong": self.wrong}
        names = dict.fromkeys(turn.speaker for turn in meeting.turns)
        return {
            "file": self.path.name,
            "format": self.path.suffix[1:],
            "turns": len(meeting.turns),
            "speakers": f"{len(names)}: {', '.join(names)}",
            "words": sum(len(turn.text.split()) for turn in meeting.turns),
            "queries": len(meeting.queries),
            "wrong": self.wrong or ("" if meeting.queries else "no summary, so it cannot train"),
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
    """A meeting with its summaries.

    Raises:
        QuorumError: the meeting or one of its summaries is malformed, or a table of its folder is.
    """
    rows = [row for table in sorted(path.parent.glob("*.csv")) for row in _rows(table)]
    meeting = _with_summary(path)
    queries = [row.query(len(meeting.turns)) for row in rows if row.cells["file"] == path.name]
    return replace(meeting, queries=(*meeting.queries, *queries))


def check(folder: Path) -> list[Checked]:
    """Every meeting of a folder, and every fault of its tables; one fault does not hide the others.

    Meetings may lie in subfolders with the names of splits.

    Raises:
        QuorumError: there is no such folder, it holds no meeting, or two of its meetings have one name.
    """
    if not folder.is_dir():
        raise QuorumError(f"{folder}: is not a folder; give the one that holds the meetings")
    if splits := [folder / split for split in SPLITS if (folder / split).is_dir()]:
        return [one for split in splits for one in check(split)]
    paths = meeting_files(folder)
    if not paths:
        raise QuorumError(f"{folder}: has no meeting; put {', '.join(READERS)} files there")
    meetings: dict[str, Meeting] = {}
    queries: dict[str, list[Query]] = {path.name: [] for path in paths}
    faults: list[Checked] = []
    for path in paths:
        with _collecting(path, faults):
            meetings[path.name] = _with_summary(path)
    for table in sorted(folder.glob("*.csv")):
        with _collecting(table, faults):
            for row in _rows(table):
                name = row.cells["file"]
                if name not in queries:
                    faults.append(Checked(table, None, f"line {row.line}: this folder has no meeting {name!r}"))
                elif name in meetings:
                    with _collecting(table, faults):
                        queries[name].append(row.query(len(meetings[name].turns)))
    found = {name: replace(own, queries=(*own.queries, *queries[name])) for name, own in meetings.items()}
    return [Checked(path, found[path.name]) for path in paths if path.name in found] + faults


@contextmanager
def _collecting(path: Path, faults: list[Checked]) -> Iterator[None]:
    """Add an error of the block to the faults, as one of a file."""
    try:
        yield
    except QuorumError as error:
        faults.append(Checked(path, None, str(error).removeprefix(f"{path}: ")))


def _with_summary(path: Path) -> Meeting:
    """A meeting with the summary that has its name."""
    if path.suffix.lower() == ".json":
        meeting = parse_meeting(path)
    else:
        meeting = Meeting(path.stem, tuple(read_transcript(path)), ())
    summary = path.with_name(path.stem + SUMMARY)
    if not summary.is_file():
        return meeting
    text = " ".join(text_of(summary).split())
    if not text:
        raise QuorumError(f"{summary}: is empty; write the summary, or remove the file")
    return replace(meeting, queries=(*meeting.queries, _query(WHOLE, text, (0, len(meeting.turns) - 1))))


@dataclass(frozen=True)
class _Row:
    """A row of a table of summaries, and where it begins."""

    table: Path
    line: int
    cells: Mapping[str, str]

    def query(self, count: int) -> Query:
        """The query of a meeting with so many turns.

        Raises:
            QuorumError: there is no summary, or the turns are not among the meeting's.
        """
        where = f"{self.table}: line {self.line}"
        query, summary = (" ".join(self.cells.get(column, "").split()) for column in ("query", "summary"))
        if not summary:
            raise QuorumError(f"{where}: summary is empty; write it, or remove the row")
        turns = self.cells.get("turns", "").strip()
        match = re.fullmatch(r"(\d{1,9})\s*+-\s*+(\d{1,9})", turns)
        if turns and (match is None or not 1 <= int(match[1]) <= int(match[2]) <= count):
            raise QuorumError(
                f"{where}: turns {turns[:20]!r}: give A-B with 1 <= A <= B <= {count}, the number of turns"
            )
        return _query(query or WHOLE, summary, (int(match[1]) - 1, int(match[2]) - 1) if match else (0, count - 1))


def _rows(table: Path) -> Iterator[_Row]:
    for line, cells in rows_of(table, text_of(table), COLUMNS[:3], shorter=True):
        yield _Row(table, line, cells)


def _query(query: str, answer: str, span: tuple[int, int]) -> Query:
    return Query(query=query, answer=answer, relevant_text_span=(span,))


def to_json(meeting: Meeting) -> Json:
    """The meeting in QMSum's schema."""
    return {
        "meeting_transcripts": [{"speaker": turn.speaker, "content": turn.text} for turn in meeting.turns],
        "specific_query_list": [
            {"query": one.query, "answer": one.answer, "relevant_text_span": [list(span) for span in one.spans]}
            for one in meeting.queries
        ],
    }
