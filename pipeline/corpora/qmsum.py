"""QMSum meetings -> examples.

Zhong et al., "QMSum: A New Benchmark for Query-based Multi-domain Meeting Summarization", NAACL 2021.
One JSON file a meeting: `meeting_transcripts` [{speaker, content}], `specific_query_list` [{query, answer,
relevant_text_span [[first, last], ...]}], `general_query_list`, `topic_list`. Spans are inclusive at both ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, Field, ValidationError, field_validator

from pipeline.corpora.conversation import Conversation, Notes, Turn
from pipeline.corpora.example import SPLITS, Split
from pipeline.corpora.people_files import text_of
from pipeline.corpora.speakers import UNKNOWN
from pipeline.corpora.text import clean, is_sound
from pipeline.errors import QuorumError
from pipeline.workspace.files import parse_json
from pipeline.workspace.record import first_problem

SpanEnd = Literal["inclusive", "exclusive"]
DOMAINS = ("Academic", "Committee", "Product")


def _sound(text: str) -> str:
    if not is_sound(text):
        raise ValueError("has a NUL or half of a surrogate pair")
    return text


Words = Annotated[str, AfterValidator(_sound)]


@dataclass(frozen=True)
class Meeting:
    """One parsed meeting file."""

    name: str
    turns: tuple[Turn, ...]
    queries: tuple[Query, ...]


class Query(BaseModel):
    """One specific query: its words, its reference summary, and its spans as published."""

    query: Words
    answer: Words
    spans: tuple[tuple[int, int], ...] = Field(alias="relevant_text_span")

    @field_validator("spans")
    @classmethod
    def _run_forwards(cls, spans: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        for first, last in spans:
            if not 0 <= first <= last:
                raise ValueError(f"{[first, last]} runs backwards or starts below 0")
        return spans


class _Utterance(BaseModel):
    speaker: Annotated[Words, BeforeValidator(lambda name: UNKNOWN if name is None else name)] = Field(
        UNKNOWN, validation_alias=AliasChoices("speaker", "speaker_name")
    )
    content: Words = Field(validation_alias=AliasChoices("content", "text", "sentence"))


class _File(BaseModel):
    """A meeting file, or the sentences of whisperX, whisper.cpp, AssemblyAI or Fireflies; other keys are not read."""

    meeting_transcripts: list[_Utterance] = Field(
        min_length=1,
        validation_alias=AliasChoices("meeting_transcripts", "segments", "transcription", "utterances", "sentences"),
    )
    specific_query_list: tuple[Query, ...] = ()


def parse_meeting(path: Path) -> Meeting:
    """Read one meeting file.

    Raises QuorumError for malformed JSON, a missing key, a wrong type, an empty transcript, or a span that is reversed.
    """
    data = parse_json(text_of(path), path, remedy="replace the file by a valid one in QMSum's schema")
    try:
        found = _File.model_validate({"sentences": data} if isinstance(data, list) else data)
    except ValidationError as error:
        wrong = first_problem(error)
        raise QuorumError(f"{path}: not a QMSum meeting: {wrong}; correct it, see data/sample for the schema") from None
    turns = tuple(Turn(turn.speaker, turn.content) for turn in found.meeting_transcripts)
    return Meeting(path.stem, turns, found.specific_query_list)


def span_turns(turns: tuple[Turn, ...], spans: tuple[tuple[int, int], ...], span_end: SpanEnd) -> tuple[Turn, ...]:
    """The turns in the spans, in the order of the spans, up to the transcript's end.

    `exclusive` reads [first, last) as the paper's preprocessing did, `inclusive` [first, last] as QMSum defines it.
    """
    extra = 1 if span_end == "inclusive" else 0
    return tuple(turn for first, last in spans for turn in turns[first : last + extra])


def examples_of(meeting: Meeting, domain: str, split: Split, span_end: SpanEnd, notes: Notes) -> list[Conversation]:
    """One example a specific query of a domain's or own client's meeting. `notes` counts corrections."""
    # Files of two clients can have the same name.
    corpus, name = ("qmsum", meeting.name) if domain in DOMAINS else (domain, f"{domain}/{meeting.name}")
    examples = []
    for number, query in enumerate(meeting.queries):
        identity = f"{corpus}/{domain}/{meeting.name}/{number}"
        turns = tuple(Turn(t.speaker, clean(t.text)) for t in span_turns(meeting.turns, query.spans, span_end))
        text, target = query.query.strip(), query.answer.strip()
        examples.append(Conversation(identity, corpus, domain, split, name, text, turns, target))
        notes.spans_past_end += sum(last >= len(meeting.turns) for _, last in query.spans if target)
    return notes.usable(examples)


def read_domains(folders: Mapping[str, Path], span_end: SpanEnd) -> tuple[list[Conversation], Notes]:
    """The examples of every meeting at `{train,val,test}/*.json` below each folder, and what was corrected.

    `folders`: of QMSum's domains, and of clients with their own meetings. Raises QuorumError if a split has no meeting,
    or a file is not one.
    """
    examples: list[Conversation] = []
    notes = Notes()
    for (domain, folder), split in product(folders.items(), SPLITS):
        paths = sorted((folder / split).glob("*.json"))
        if not paths:
            raise QuorumError(f"{folder / split}: holds no meeting (*.json); add some or correct the folder's name")
        for path in paths:
            examples += examples_of(parse_meeting(path), domain, split, span_end, notes)
    return examples, notes


def own_folder(raw: Path, client: str) -> Path:
    """The folder of a client's own meetings, below QMSum's."""
    return raw / "own" / client
