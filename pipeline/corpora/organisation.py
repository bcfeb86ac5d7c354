"""An organisation's folder of meetings in any format that `transcripts` reads, with their summaries.

`NAME.summary.txt` is a summary of the meeting NAME. A CSV file has one summary a row, with the columns file, query,
summary and turns: `A-B`, counted from 1, or empty for the entire meeting. QMSum's JSON contains its queries.

A client's meetings are split into train, val and test unless the folder has these subfolders, and written in QMSum's
schema, one JSON file a meeting.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.corpora.example import SPLITS
from pipeline.corpora.hash_order import tenths
from pipeline.corpora.people_files import rows_of, same_name, text_of
from pipeline.corpora.qmsum import Meeting, Query
from pipeline.corpora.said import Transcript
from pipeline.corpora.text import normal
from pipeline.corpora.transcripts import READERS, read_meeting
from pipeline.errors import QuorumError
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say
from pipeline.workspace.words import WHOLE

SUMMARY = ".summary.txt"
COLUMNS = ("file", "query", "summary")  # the columns that a table must have; `turns` may be there, too


@dataclass(frozen=True)
class Checked:
    """One file and its meeting, or what is wrong with it and where; `read`: what became of the file's lines."""

    path: Path
    meeting: Meeting | None
    wrong: str = ""
    read: Transcript | None = None

    def __str__(self) -> str:
        if self.meeting is None:
            return f"{self.path.name}: {self.wrong}"
        turns, queries = self.meeting.turns, self.meeting.queries
        words, names = sum(len(turn.text.split()) for turn in turns), dict.fromkeys(turn.speaker for turn in turns)
        counts = f"{len(turns)} turns, {words} words, {len(queries)} summaries, speakers {len(names)}"
        trains = "" if queries else "; no summary, so it cannot train"
        return f"{self.path.name}: {counts}: {', '.join(names)}{trains}; {self.read}"


def meetings_of(folder: Path) -> dict[Path, Meeting]:
    """The meetings of a folder, with their summaries.

    Raises QuorumError if there is none, or a meeting or summary is malformed.
    """
    meetings = {}
    for one in (found := check(folder)):
        if one.meeting is None:
            raise QuorumError(f"{one.path}: {one.wrong}")
        meetings[one.path] = one.meeting
    for line in equal(found):
        say(line)
    return meetings


def equal(found: Iterable[Checked]) -> Iterator[str]:
    """A line for each meeting with the words of an earlier one: in training and test they would inflate scores."""
    first: dict[str, Path] = {}
    for path, meeting in ((one.path, one.meeting) for one in found if one.meeting is not None):
        words = normal(" ".join(turn.text for turn in meeting.turns))
        if (other := first.setdefault(words, path)) != path:
            yield f"{path}: has the words of {other}; remove one of them"


def check(folder: Path) -> list[Checked]:
    """Every meeting of a folder, and every fault of its tables; one fault does not hide the others.

    Meetings may lie in subfolders with the names of splits.

    Raises QuorumError if there is no such folder, or it holds no meeting.
    """
    if not folder.is_dir():
        raise QuorumError(f"{folder}: is not a folder; give the one that holds the meetings")
    visible = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "~$")))
    found = [path for path in visible if path.is_file() and path.suffix.lower() in READERS]
    if splits := [folder / split for split in SPLITS if (folder / split).is_dir()]:
        beside = [Checked(path, None, f"is beside {splits[0].name}/; move it into a split's folder") for path in found]
        every, known = [one for split in splits for one in check(split)], dict[str, Path]()
        read = [one.path for one in every if one.meeting is not None]
        twice = [path for path in read if known.setdefault(same_name(path.stem), path) != path]
        wrong = "has the name of a meeting in another split; rename one of them"
        return [*every, *(Checked(path, None, wrong) for path in twice), *beside]
    summaries = {same_name(path.name[: -len(SUMMARY)]): path for path in found if path.name.lower().endswith(SUMMARY)}
    paths = [path for path in found if path not in summaries.values()]
    if not paths:
        raise QuorumError(f"{folder}: has no meeting; put {', '.join(READERS)} files there")
    meetings: dict[Path, Meeting] = {}
    files: dict[Path, Transcript] = {}
    faults: list[Checked] = []
    by_stem: dict[str, Path] = {}
    for path in paths:
        with _collecting(path, faults):
            if (first := by_stem.setdefault(same_name(path.stem), path)) != path:
                raise QuorumError(f"{first.name} has the same name; remove or rename one of them")
            meeting, files[path] = read_meeting(path)
            summary = summaries.pop(same_name(path.stem), None)
            meetings[path] = _with_summary(meeting, f"{summary}", text_of(summary)) if summary else meeting
    for summary in summaries.values():
        faults.append(Checked(summary, None, "has no meeting of its name; rename it as the meeting, or remove it"))
    by_name = {same_name(path.name): path for path in paths}
    for table in (path for path in visible if path.suffix.lower() in (".csv", ".tsv")):
        with _collecting(table, faults):
            for line, row in rows_of(table, COLUMNS, shorter=True):
                with _collecting(table, faults):
                    if (named := by_name.get(same_name(row["file"]))) is None:
                        raise QuorumError(f"line {line}: no meeting here is named {row['file']!r}; give its full name")
                    if named in meetings:
                        cells = row["summary"], row["query"], row.get("turns", "")
                        meetings[named] = _with_summary(meetings[named], f"line {line}", *cells)
    return [Checked(path, meeting, read=files[path]) for path, meeting in meetings.items()] + faults


@contextmanager
def _collecting(path: Path, faults: list[Checked]) -> Iterator[None]:
    """Add an error of the block to the faults, as one of a file."""
    try:
        yield
    except QuorumError as error:
        faults.append(Checked(path, None, str(error).removeprefix(f"{path}: ")))


def _with_summary(meeting: Meeting, where: str, summary: str, query: str = "", turns: str = "") -> Meeting:
    """A meeting with a summary of all its turns, or of those from A to B.

    Raises QuorumError, which names the place, if there is no summary, or the turns are not among the meeting's.
    """
    query, answer, count = " ".join(query.split()) or WHOLE, " ".join(summary.split()), len(meeting.turns)
    if not answer:
        raise QuorumError(f"{where}: summary is empty; write it, or remove it")
    first, end = turn_range(turns, count, f"{where}: turns")
    added = Query(query=query, answer=answer, relevant_text_span=((first, end - 1),))
    return replace(meeting, queries=(*meeting.queries, added))


def turn_range(text: str, count: int, where: str) -> tuple[int, int]:
    """`A-B` or `A`, counted from 1 and inclusive -> the ends of a Python range; an empty text: all turns.

    Raises QuorumError, which begins with `where`, if it is of another form, or not among so many turns.
    """
    match = re.fullmatch(r"(\d{1,9})(?:\s*+[-–—]\s*+(\d{1,9}))?", text.strip() or f"1-{count}")
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last <= count:
        raise QuorumError(f"{where} {text[:20]!r}: give A-B with 1 <= A <= B <= {count}, the number of turns")
    return first - 1, last


def split_folder(folder: Path, into: Path, *, roles: bool = False, query: str = WHOLE) -> None:
    """Write a client's meetings to `into/{train,val,test}`.

    Args:
        roles: whether speakers' names are replaced. Names that may be left are printed.
        query: of summaries that have none, in the language of the meetings.

    Raises QuorumError if the folder is missing or has fewer than three meetings, or a file cannot be read.
    """
    meetings = meetings_of(folder)
    given = {path: path.parent.name for path in meetings if path.parent != folder}
    if not given and len(meetings) < 3:
        kinds = ", ".join(f"*{ending}" for ending in READERS)
        raise QuorumError(f"{folder}: holds {len(meetings)} meetings ({kinds}); a client needs at least three")
    words = {path.name: "\n".join(turn.text for turn in meeting.turns) for path, meeting in meetings.items()}
    by_name = tenths([*words], words.items())
    for path, meeting in meetings.items():
        if roles:
            from pipeline.corpora.roles import with_roles  # seconds, which others save

            meeting, missed = with_roles(meeting)
            if missed:
                say(f"{path}: may still be names: {', '.join(missed)}")
        queries = [one.model_copy(update={"query": query}) if one.query == WHOLE else one for one in meeting.queries]
        said = [{"speaker": turn.speaker, "content": turn.text} for turn in meeting.turns]
        asked = [one.model_dump(by_alias=True) for one in queries]
        content = {"meeting_transcripts": said, "specific_query_list": asked}
        write_json(into / given.get(path, by_name[path.name]) / f"{path.stem}.json", content)
