"""The reader of each published source: data/raw/<source> -> examples, and what the reader noted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.corpora import aeslc, elitr, hmnet, iob, meetingbank, newsgroups, samsum, squad
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.notes import Notes
from pipeline.corpora.options import Options
from pipeline.corpora.qmsum import read_domains
from pipeline.corpora.statistics import compared, counts, table
from pipeline.workspace.record import Json

CLIENT_OF = {"samsum": "SAMSum", "ami": "AMI", "icsi": "ICSI", "elitr": "ELITR", "meetingbank": "MeetingBank"}
"""Corpus of conversations without queries -> its client in a federation by domain."""


@dataclass(frozen=True)
class Read:
    """A source's examples, its statistics by split, and what its reader noted."""

    examples: Sequence[Any]
    statistics: Sequence[Json]
    notes: Json = field(default_factory=dict)


def _qmsum(folder: Path, options: Options) -> Read:
    by_end = {end: read_domains(folder, options.own, end) for end in ("inclusive", "exclusive")}
    examples, notes, meetings = by_end[options.span_end or "inclusive"]
    statistics = compared(by_end["inclusive"][0], by_end["exclusive"][0])
    return Read(examples, statistics, {"meetings": meetings, "span_end": options.span_end, **asdict(notes)})


Conversations = Callable[[Path, str, Notes], tuple[list[Conversation], int]]
"""(folder, query of every example, notes to add to) -> (examples, number of meetings)."""


def _queried(read: Conversations, folder: Path, options: Options) -> Read:
    notes = Notes()
    examples, meetings = read(folder, options.query or "", notes)
    return Read(examples, table(examples), {"meetings": meetings, "query": options.query, **asdict(notes)})


def _hmnet(corpus: str, folder: Path, query: str, notes: Notes) -> tuple[list[Conversation], int]:
    return hmnet.read(folder, corpus, query, notes)


def _labelled(read: Callable[[Path], Sequence[Any]], folder: Path, options: Options) -> Read:
    del options
    examples = read(folder)
    return Read(examples, counts(examples))


def _newsgroups(folder: Path, options: Options) -> Read:
    examples = newsgroups.read(folder, options.headers)
    return Read(examples, counts(examples))


def _aeslc(folder: Path, options: Options) -> Read:
    del options
    left_out: Counter[str] = Counter()
    examples = aeslc.read(folder, left_out)
    return Read(examples, counts(examples), {"left_out": left_out["train"]})


READERS: dict[str, Callable[[Path, Options], Read]] = {
    "qmsum": _qmsum,
    "samsum": partial(_queried, samsum.read),
    "ami": partial(_queried, partial(_hmnet, "ami")),
    "icsi": partial(_queried, partial(_hmnet, "icsi")),
    "elitr": partial(_queried, elitr.read),
    "meetingbank": partial(_queried, meetingbank.read),
    "20news": _newsgroups,
    "uner": partial(_labelled, iob.read_uner),
    "wnut": partial(_labelled, iob.read_wnut),
    "squad": partial(_labelled, squad.read),
    "aeslc": _aeslc,
}
