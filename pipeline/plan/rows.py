"""The rows of params.yaml: a data set, which is a task on a source, and a run, which is a method in a setting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, PositiveFloat, model_validator

from pipeline.clients.setting import Count
from pipeline.clients.skews import check_own
from pipeline.clients.taking import Takes
from pipeline.corpora.catalog import SOURCES, Options
from pipeline.corpora.published_labelled import Headers
from pipeline.corpora.qmsum import SpanEnd
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import UNTRAINED
from pipeline.model.frozen_part import Above, FrozenPart
from pipeline.plan.learner import AdaptedPositions
from pipeline.tasks import TASKS
from pipeline.workspace.record import FilePath, Json, Record
from pipeline.workspace.words import WHOLE


def one_of(what: str, known: Iterable[str]) -> AfterValidator:
    """Check that a name is known; the error lists all that are."""
    names = list(known)

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"unknown {what} {name!r}; known: {', '.join(names)}")
        return name

    return AfterValidator(check)


Method = Annotated[str, one_of("method", (*UNTRAINED, *ALGORITHMS))]
"""The name of an algorithm, of the untrained model, or of turns of the source."""
Frozen = Annotated[str, AfterValidator(lambda text: FrozenPart.parse(text) and text)]
"""The frozen part of an encoder, as FedNLP writes it."""


class Rates(Record):
    """Learning rates, as tuning chose them: the same for all methods of a family.

    Attributes:
        own: of AdamW, where a client's model is evaluated and starts a round from itself.
        local: of AdamW, where a client's model is evaluated and starts from the server's; and of Ditto, which has both.
        server: of AdamW, where the server's model is evaluated.
        pooled: of one model of all data.
        adamw: of AdamW, where none of these is given.
        sgd: of SGD.
    """

    own: PositiveFloat | None = None
    local: PositiveFloat | None = None
    server: PositiveFloat | None = None
    pooled: PositiveFloat | None = None
    adamw: PositiveFloat | None = None
    sgd: PositiveFloat | None = None


class Queries(Record):
    """Queries that nobody wrote, in one language.

    Attributes:
        whole: of an own summary that has none, and of `summarize` without one.
        merge: of the summaries of a long meeting's parts; {query} is the query of the parts.
    """

    whole: str = Field(default=WHOLE, pattern=r"\S")
    merge: str = Field(default="These are summaries of one meeting's parts, in order. {query}", pattern=r"\{query\}")


class Data(Record):
    """A data set. Keys that are also at the top of the file, or in a run, are for its runs.

    Attributes:
        task: what is learned.
        source: a published source, or the data set's own name, with `file`.
        file: a user's CSV or JSONL below data/own, or folder of documents.
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
    headers: Headers = "all"
    classes: list[str] = Field(default_factory=list)
    take: Takes = Field(default_factory=Takes)
    backbone: str | None = None
    frozen: Frozen | None = None
    source_tokens: Count | None = None
    target_tokens: Count | None = None
    max_tokens: Count | None = None
    rounds: Count | None = None
    clients_per_round: Count | Literal["all"] | None = None
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


class Run(Record):
    """A method in a setting. Other keys are a training's common knobs, or hyperparameters of the run's algorithm.

    Attributes:
        seeds: its seeds; None: those of its data set, or the file.
        evaluate: whether the server's or the clients' models are evaluated; None: as the method has it.
        backbone, frozen: before its data set's.
        layers: the layers that its encoder has, from below; None: all.
        adapted_layers: N, the layers of a language model, from above, that have adapters; None: the file's.
        above: what trains above the frozen part; None: the file's.
        size: m of a bottleneck or r of LoRA; None: the file's.
        dropout: the probability that an adapter's input is dropped, in training.
        adapted_positions: whether adapters act on the target's positions, or on the prompt's too.
        decode: whether it writes predictions; else it has a loss alone.
        prolonged: whether it has `added_rounds` more rounds.
        late: the clients that join with the first added round.
        rounds_share: the share of `rounds` that it trains.
        learning_rate: its own; None: its family's.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    method: Method
    setting: str
    seeds: list[int] | None = Field(default=None, min_length=1)
    evaluate: Literal["local", "server"] | None = None
    backbone: str | None = None
    frozen: Frozen | None = None
    layers: list[int] | None = Field(default=None, min_length=1)
    adapted_layers: Count | None = None
    above: Above | None = None
    size: Count | None = None
    dropout: float = Field(default=0.0, ge=0, lt=1)
    adapted_positions: AdaptedPositions = "targets"
    decode: bool = True
    prolonged: bool = False
    late: list[str] = Field(default_factory=list)
    rounds_share: float = Field(default=1.0, gt=0, le=1)
    learning_rate: PositiveFloat | None = None

    @property
    def knobs(self) -> Json:
        """The common knobs of a training and the hyperparameters that it sets; null leaves one to the data set."""
        return {name: value for name, value in (self.model_extra or {}).items() if value is not None}

    @property
    def trains(self) -> bool:
        """Whether its method trains a model."""
        return self.method not in UNTRAINED

    @model_validator(mode="after")
    def _check_knobs(self) -> Run:
        of_any = {"method", "setting", "seeds", "decode", "backbone", "frozen", "layers", "above", "size"}
        if not self.trains and self.model_fields_set - of_any | set(self.knobs):
            raise ValueError(f"{self.method} trains nothing, so it takes no knobs; remove them")
        if self.decode and (self.dropout or self.adapted_positions == "all"):
            raise ValueError("a run with dropout or adapted prompts has no store; set decode: false")
        if self.rounds_share != 1 and "rounds" in self.knobs:
            raise ValueError("rounds_share scales the scale's rounds, and this run sets its own rounds; remove one")
        if self.late and not self.prolonged:
            raise ValueError("late clients join with the added rounds; set prolonged: true")
        if self.prolonged and "rounds" in self.knobs:
            raise ValueError("rounds: a prolonged run has the scale's rounds plus added_rounds; set those")
        return self
