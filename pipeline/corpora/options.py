"""Options of readers, apart from these: the plan needs no reader."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.corpora.qmsum import SpanEnd
from pipeline.workspace.record import Record


class Options(Record):
    """How a source is read; each source uses those that it has.

    Attributes:
        span_end: of QMSum: whether a span includes its last turn.
        own: of QMSum: the users' clients, whose meetings are read with it.
        query: of a corpus without queries: the query of every example.
        headers: of 20 Newsgroups: which headers are read.
    """

    span_end: SpanEnd | None = None
    own: list[str] = Field(default_factory=list)
    query: str | None = None
    headers: Literal["all", "subject"] = "all"
