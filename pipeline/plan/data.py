"""A data set of params.yaml: a task on a source, and what its runs have of their own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.clients.setting import Count
from pipeline.clients.skews import check_own
from pipeline.clients.taking import Takes
from pipeline.corpora.catalog import SOURCES, Options
from pipeline.corpora.qmsum import SpanEnd
from pipeline.plan.run import Frozen, Method, Rates, one_of
from pipeline.tasks import TASKS
from pipeline.workspace.record import FilePath, Json, Record


class Data(Record):
    """A data set. Keys that are also at the top of the file, or in a run, are for its runs.

    Attributes:
        task: what is learned.
        source: a published source, or the data set's own name, with `file`.
        file: a user's CSV or JSONL below data/own.
        span_end: of QMSum: whether a span includes its last turn.
        query: of a corpus without queries: the query of every example.
        headers: of 20 Newsgroups: which headers are read.
        classes: the classes of its labels, where no site sees all of them; else those of the training examples.
        take: which examples of each split are used, in settings that divide one data set.
        backbone: of the models that read it.
        frozen: where their encoder is cut.
        source_tokens, target_tokens, max_tokens: of the models that read it, before the file's.
        rounds, clients_per_round, batch_size, rates, seeds: of its runs, before the file's.
        knobs: method -> hyperparameters of its runs.
    """

    task: Annotated[str, one_of("task", TASKS)]
    source: str
    file: FilePath | None = None
    span_end: SpanEnd = "inclusive"
    query: str | None = None
    headers: Literal["all", "subject"] = "all"
    classes: list[str] = Field(default_factory=list)
    take: Takes = Field(default_factory=Takes)
    backbone: str | None = None
    frozen: Frozen | None = None
    source_tokens: Count | None = None
    target_tokens: Count | None = None
    max_tokens: Count | None = None
    rounds: Count | None = None
    clients_per_round: Count | None = None
    batch_size: Count | None = None
    rates: Rates = Field(default_factory=Rates)
    knobs: dict[Method, Json] = Field(default_factory=dict)
    seeds: list[int] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _has_one_source(self) -> Data:
        if self.file is not None:
            check_own(self.file)
        elif self.source not in SOURCES:
            raise ValueError(f"source: unknown source {self.source!r}; known: {', '.join(SOURCES)}; or give a file")
        return self

    def options(self, own: list[str]) -> Options:
        """How its source is read; `own`: the users' clients whose meetings are read with it."""
        span_end = self.span_end if self.source == "qmsum" else None
        return Options(span_end=span_end, own=own, query=self.query, headers=self.headers)
