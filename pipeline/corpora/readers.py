"""The reader of each published source: data/raw/<source> -> examples, and what the reader noted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.corpora import aeslc, elitr, hmnet, iob, meetingbank, newsgroups, samsum, squad
from pipeline.corpora.conversation import Conversation, Dialogue, Notes
from pipeline.corpora.options import Options
from pipeline.corpora.qmsum import read_domains
from pipeline.corpora.statistics import compared, counts, table
from pipeline.workspace.record import Json

DIALOGUES: dict[str, tuple[str, Callable[[Path], Iterator[Dialogue]]]] = {
    "samsum": ("SAMSum", samsum.read),
    "ami": ("AMI", hmnet.read),
    "icsi": ("ICSI", hmnet.read),
    "elitr": ("ELITR", elitr.read),
    "meetingbank": ("MeetingBank", meetingbank.read),
}
"""Corpus of conversations without queries -> its client in a federation by domain, and its reader."""
CLIENT_OF = {corpus: client for corpus, (client, _) in DIALOGUES.items()}
TEXTS: dict[str, Callable[[Path, Options], Sequence[Any]]] = {
    "20news": lambda folder, options: newsgroups.read(folder, options.headers),
    "uner": lambda folder, _: iob.read_uner(folder),
    "wnut": lambda folder, _: iob.read_wnut(folder),
    "squad": lambda folder, _: squad.read(folder),
}


@dataclass(frozen=True)
class Read:
    """A source's examples, its statistics by split, and what its reader noted."""

    examples: Sequence[Any]
    statistics: Sequence[Json]
    notes: Json = field(default_factory=dict)


def read_source(source: str, folder: Path, options: Options) -> Read:
    """Read a published source.

    Raises:
        QuorumError: a file is missing or is not as published.
    """
    if source == "qmsum":
        inclusive, exclusive = (read_domains(folder, options.own, end) for end in ("inclusive", "exclusive"))
        examples, notes = exclusive if options.span_end == "exclusive" else inclusive
        noted = {"meetings": _meetings(examples), "span_end": options.span_end, **asdict(notes)}
        return Read(examples, compared(inclusive[0], exclusive[0]), noted)
    if source in DIALOGUES:
        notes, query = Notes(), options.query or ""
        _, read = DIALOGUES[source]
        examples = notes.untested(notes.usable(_queried(one, source, query) for one in read(folder)))
        noted = {"meetings": _meetings(examples), "query": options.query, **asdict(notes)}
        return Read(examples, table(examples), noted)
    if source == "aeslc":
        emails, left_out = aeslc.read(folder)
        return Read(emails, counts(emails), {"left_out": left_out})
    texts = TEXTS[source](folder, options)
    return Read(texts, counts(texts))


def _queried(one: Dialogue, corpus: str, query: str) -> Conversation:
    identity, client = f"{corpus}/{one.name}", CLIENT_OF[corpus]
    return Conversation(identity, corpus, client, one.split, one.meeting, query, one.turns, one.summary)


def _meetings(examples: Sequence[Conversation]) -> int:
    return len({example.meeting for example in examples})
