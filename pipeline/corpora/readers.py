"""The reader of each corpus: data/raw/<corpus> -> examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pipeline.corpora import elitr, hmnet, meetingbank, samsum
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.notes import Notes

Reader = Callable[[Path, str, Notes], tuple[list[Conversation], int]]
"""(folder, query of every example, notes to add to) -> (examples, number of meetings)."""


def _hmnet(corpus: str, folder: Path, query: str, notes: Notes) -> tuple[list[Conversation], int]:
    return hmnet.read(folder, corpus, query, notes)


READERS: dict[str, Reader] = {
    "samsum": samsum.read,
    "ami": partial(_hmnet, "ami"),
    "icsi": partial(_hmnet, "icsi"),
    "elitr": elitr.read,
    "meetingbank": meetingbank.read,
}
"""QMSum has queries, so its reader `qmsum.read_domains` is not among these."""

CLIENT_OF = {"samsum": "SAMSum", "ami": "AMI", "icsi": "ICSI", "elitr": "ELITR", "meetingbank": "MeetingBank"}
"""Corpus -> its client in a federation by domain."""
