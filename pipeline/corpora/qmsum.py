"""QMSum meetings -> examples.

Zhong et al., "QMSum: A New Benchmark for Query-based Multi-domain Meeting Summarization", NAACL 2021.
One JSON file a meeting: `meeting_transcripts` [{speaker, content}], `specific_query_list` [{query, answer,
relevant_text_span [[first, last], ...]}], `general_query_list`, `topic_list`. Spans are inclusive at both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipeline.corpora.example import SPLITS, Example, Split, Turn
from pipeline.corpora.notes import Notes
from pipeline.corpora.text import clean
from pipeline.errors import QuorumError
from pipeline.workspace.files import read_json

SpanEnd = Literal["inclusive", "exclusive"]
DOMAINS = ("Academic", "Committee", "Product")


@dataclass(frozen=True)
class Meeting:
    """One parsed meeting file."""

    name: str
    turns: tuple[Turn, ...]
    queries: tuple[Query, ...]


@dataclass(frozen=True)
class Query:
    """One specific query: its words, its reference summary, and its spans as published."""

    query: str
    answer: str
    spans: tuple[tuple[int, int], ...]


def parse_meeting(path: Path) -> Meeting:
    """Read one meeting file.

    Raises:
        QuorumError: malformed JSON, a missing key, a wrong type, an empty transcript, a negative or reversed span.
    """
    data = read_json(path, remedy="replace the file by a valid one in QMSum's schema")
    try:
        turns = tuple(Turn(_text(t["speaker"]), _text(t["content"])) for t in data["meeting_transcripts"])
        queries = tuple(_query(path, number, q) for number, q in enumerate(data.get("specific_query_list", ())))
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        what = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise QuorumError(f"{path}: not a QMSum meeting: {what}; see data/sample for the schema") from None
    if not turns:
        raise QuorumError(f"{path}: meeting_transcripts is empty; remove the file or add the transcript")
    return Meeting(path.stem, turns, queries)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r:.40}")
    return value


def _query(path: Path, number: int, row: dict[str, Any]) -> Query:
    spans = tuple((int(first), int(last)) for first, last in row["relevant_text_span"])
    for first, last in spans:
        if first < 0 or last < first:
            raise QuorumError(
                f"{path}: specific_query_list[{number}]: span [{first}, {last}] runs backwards or starts below 0; "
                "correct it"
            )
    return Query(_text(row["query"]).strip(), _text(row["answer"]).strip(), spans)


def span_turns(turns: tuple[Turn, ...], spans: tuple[tuple[int, int], ...], span_end: SpanEnd) -> tuple[Turn, ...]:
    """The turns that the spans name, in the order of the spans; what lies past the transcript's end is left out.

    `exclusive` reads [first, last) as the paper's preprocessing did, `inclusive` [first, last] as QMSum means it.
    """
    extra = 1 if span_end == "inclusive" else 0
    return tuple(turn for first, last in spans for turn in turns[first : last + extra])


def examples_of(
    meeting: Meeting, *, corpus: str, domain: str, split: Split, span_end: SpanEnd, notes: Notes
) -> list[Example]:
    """One example a specific query; `notes` counts what had to be mended. General queries are out."""
    examples = []
    for number, query in enumerate(meeting.queries):
        identity = f"{corpus}/{domain}/{meeting.name}/{number}"
        turns = span_turns(meeting.turns, query.spans, span_end)
        cleaned = tuple(Turn(turn.speaker, clean(turn.text)) for turn in turns)
        # Files of two clients may share a name, QMSum's meetings do not.
        name = meeting.name if corpus == "qmsum" else f"{corpus}/{meeting.name}"
        example = Example(identity, corpus, domain, split, name, query.query, cleaned, query.answer)
        if notes.keeps(example):
            notes.spans_past_end += sum(last >= len(meeting.turns) for _, last in query.spans)
            examples.append(example)
    return examples


def read_folder(
    folder: Path, *, corpus: str, domain: str, span_end: SpanEnd, notes: Notes
) -> tuple[list[Example], int]:
    """Every meeting under `folder/{train,val,test}/*.json` -> (examples, number of meetings).

    Raises:
        QuorumError: a split has no meeting, or a file is not one.
    """
    examples: list[Example] = []
    meetings = 0
    for split in SPLITS:
        paths = sorted((folder / split).glob("*.json"))
        if not paths:
            raise QuorumError(f"{folder / split}: holds no meeting (*.json); add some or correct the folder's name")
        meetings += len(paths)
        for path in paths:
            examples += examples_of(
                parse_meeting(path), corpus=corpus, domain=domain, split=split, span_end=span_end, notes=notes
            )
    return examples, meetings
