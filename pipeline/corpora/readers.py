"""The reader of each published source: data/raw/<source> -> examples, and what the reader noted."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import get_args

from pipeline.corpora import published_documents as documents
from pipeline.corpora import published_labelled as published
from pipeline.corpora.catalog import SOURCES, ByHand, Options
from pipeline.corpora.conversation import Notes
from pipeline.corpora.dialogues import DIALOGUES
from pipeline.corpora.example import SPLITS, Example
from pipeline.corpora.qmsum import DOMAINS, SpanEnd, own_folder, read_domains
from pipeline.corpora.statistics import compared, counts, table
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json

TEXTS: dict[str, Callable[[Path, Options], Sequence[Example]]] = {
    "20news": lambda folder, options: published.newsgroups(folder, options.headers),
    "uner": lambda folder, _: published.uner(folder),
    "wnut": lambda folder, _: published.wnut(folder),
    "squad": lambda folder, _: published.squad(folder),
}
DOCUMENTS: dict[str, Callable[[Path], tuple[Sequence[Example], int]]] = {
    "aeslc": published.aeslc,
    "bbc": documents.bbc,
    "scitldr": documents.scitldr,
    "sumpubmed": documents.sumpubmed,
}
"""Source -> a reader that also counts what it left out."""
DAMAGED = (OSError, EOFError, LookupError, ValueError, TypeError, zlib.error, zipfile.BadZipFile, csv.Error)
"""What readers raise on files that are not as published."""


@dataclass(frozen=True)
class Read:
    """A source's examples, its statistics by split, and what its reader noted."""

    examples: Sequence[Example]
    statistics: Sequence[Json]
    notes: Json = field(default_factory=dict)


def read_source(source: str, folder: Path, options: Options) -> Read:
    """Read a published source. Raises QuorumError if a file is missing or is not as published."""
    origin = SOURCES[source]
    remedy = origin.how_to_get if isinstance(origin, ByHand) else f"run `dvc repro ingest@{source}`"
    try:
        found = _read(source, folder, options)
    except DAMAGED as error:
        reason = error if isinstance(error, OSError) else repr(error)  # the text of an OSError names the file
        raise QuorumError(f"{folder}: is not as published ({reason}); {remedy}") from None
    for split in SPLITS:
        if not any(example.split == split for example in found.examples):
            raise QuorumError(f"{folder}: holds no {split} example; {remedy}")
    return found


def _read(source: str, folder: Path, options: Options) -> Read:
    about: Json = {}
    if source == "qmsum":
        folders = {name: folder / name for name in DOMAINS} | {name: own_folder(folder, name) for name in options.own}
        inclusive, exclusive = (read_domains(folders, end) for end in get_args(SpanEnd))
        meetings, notes = exclusive if options.span_end == "exclusive" else inclusive
        statistics, about["span_end"] = compared(inclusive[0], exclusive[0]), options.span_end
    elif source in DIALOGUES:
        notes, (client, read) = Notes(), DIALOGUES[source]
        queried = (one.queried(source, client, options.query or "") for one in read(folder))
        meetings = notes.untested(notes.usable(queried))
        statistics, about["query"] = table(meetings), options.query
    elif source in DOCUMENTS:
        texts, about["left_out"] = DOCUMENTS[source](folder)
        return Read(texts, counts(texts), about)
    else:
        texts = TEXTS[source](folder, options)
        return Read(texts, counts(texts))
    number = len({one.meeting for one in meetings})
    return Read(meetings, statistics, {"meetings": number, **about, **asdict(notes)})
