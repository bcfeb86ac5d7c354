"""A run of params.yaml: a method in a setting with a learner, which is a row of the tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, PositiveFloat, model_validator

from pipeline.clients.setting import Count
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import UNTRAINED
from pipeline.model.frozen_part import Above, FrozenPart
from pipeline.plan.learner import AdaptedPositions
from pipeline.workspace.record import Json, Record


def one_of(what: str, known: Iterable[str]) -> AfterValidator:
    """Check that a name is known; the error lists all that are."""
    names = list(known)

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"unknown {what} {name!r}; known: {', '.join(names)}")
        return name

    return AfterValidator(check)


def _parsed(text: str) -> str:
    FrozenPart.parse(text)
    return text


Method = Annotated[str, one_of("method", (*UNTRAINED, *ALGORITHMS))]
"""The name of an algorithm, of the untrained model, or of turns of the source."""
Frozen = Annotated[str, AfterValidator(_parsed)]
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


class Run(Record):
    """A method in a setting. Other keys are a training's common knobs, or hyperparameters of the run's algorithm.

    Attributes:
        seeds: its seeds; None: those of its data set, or the file.
        at: the scale that has it; None: every scale.
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
    at: str | None = None
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
        """The common knobs of a training and the hyperparameters that it sets; null sets only what may be null."""
        extra = self.model_extra or {}
        return {name: value for name, value in extra.items() if value is not None or name == "clients_per_round"}

    @property
    def trains(self) -> bool:
        """Whether its method trains a model."""
        return self.method not in UNTRAINED

    @model_validator(mode="after")
    def _check_knobs(self) -> Run:
        of_any = {"method", "setting", "seeds", "at", "decode", "backbone", "frozen", "layers", "above", "size"}
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
