"""A run of params.yaml, which is a row of the tables, and the grids of `tune`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, PositiveFloat, field_validator, model_validator

from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import UNTRAINED
from pipeline.workspace.record import Record


def _known(method: str) -> str:
    if method not in (*UNTRAINED, *ALGORITHMS):
        raise ValueError(f"unknown method {method!r}; known: {', '.join((*UNTRAINED, *ALGORITHMS))}")
    return method


Method = Annotated[str, AfterValidator(_known)]
"""The name of an algorithm, of the untrained model, or of turns of the source."""
AdapterKind = Literal["bottleneck", "lora"]
Family = Literal["own", "local", "server", "pooled"]
"""Runs that share a learning rate; see `Rates`."""
AdaptedPositions = Literal["targets", "all"]


class Run(Record):
    """A method, a setting, and which of its models is scored.

    `seeds`: its seeds, if not all of the file's. `decode: false` writes no summaries and computes the loss alone.
    `prolonged` adds the scale's `added_rounds`; the clients in `late` join with the first of them. `rounds_share`
    scales `rounds`. A run with `adapted_layers`, `dropout` or `adapted_positions: all` cannot use the store.
    Other keys are a training's common knobs, or hyperparameters of the run's algorithm.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    method: Method
    setting: str = "domains"
    seeds: list[int] | None = Field(default=None, min_length=1)
    evaluate: Literal["local", "server"] | None = None
    learning_rate: float | None = Field(default=None, gt=0)
    adapter: AdapterKind | None = None
    adapted_layers: int | None = Field(default=None, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    adapted_positions: AdaptedPositions = "targets"
    decode: bool = True
    prolonged: bool = False
    late: list[str] = Field(default_factory=list)
    rounds_share: float = Field(default=1.0, gt=0, le=1)

    @property
    def knobs(self) -> dict[str, Any]:
        """The common knobs of a training and the hyperparameters that it sets; null sets nothing."""
        return {name: value for name, value in (self.model_extra or {}).items() if value is not None}

    @model_validator(mode="after")
    def _check_knobs(self) -> Run:
        if self.method in UNTRAINED and self.model_fields_set - {"method", "setting", "decode"} | set(self.knobs):
            raise ValueError(f"{self.method} trains nothing, so it takes no knobs; remove them")
        if self.decode and (self.adapted_layers or self.dropout or self.adapted_positions == "all"):
            raise ValueError(
                "a run with dropout, its own adapted_layers or adapted prompts has no store; set decode: false"
            )
        if self.rounds_share != 1 and "rounds" in self.knobs:
            raise ValueError("rounds_share scales the scale's rounds, and this run sets its own rounds; remove one")
        if self.late and not self.prolonged:
            raise ValueError("late clients join with the added rounds; set prolonged: true")
        if self.prolonged and "rounds" in self.knobs:
            raise ValueError("rounds: a prolonged run has the scale's rounds plus added_rounds; set those")
        return self


class Rates(Record):
    """Learning rates by the evaluated model, as `make tune` chose them: the same for all methods of a family.

    `own`: the client's model, which starts a round from itself. `local`: the client's model, which starts from the
    server's, and Ditto's, which trains both. `server`: the server's. `pooled`: one model of all data.
    """

    own: float = Field(gt=0)
    server: float = Field(gt=0)
    local: float = Field(gt=0)
    pooled: float = Field(gt=0)


class Tune(Record):
    """Tuning at a seed that no table reports: rates of families, and knobs of runs, the same number of trials for each.

    `rates`: the grid of all families. `families`: family -> the run that its rate is chosen by. `trials`: run -> values
    of its own knobs.
    """

    seed: int = Field(ge=0)
    rates: list[PositiveFloat] = Field(default_factory=list)
    families: dict[Family, str]
    trials: dict[str, list[dict[str, Any]]]

    @field_validator("rates")
    @classmethod
    def _a_grid(cls, rates: list[float]) -> list[float]:
        if rates and (len(set(rates)) < 2 or len(set(rates)) < len(rates)):
            raise ValueError("a grid needs two rates or more, each once")
        return rates

    @model_validator(mode="after")
    def _rates_of_families(self) -> Self:
        if bool(self.rates) != bool(self.families):
            raise ValueError("rates and families go together: give both, or neither")
        return self

    @field_validator("trials")
    @classmethod
    def _as_many_for_each(cls, trials: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
        if len({len(own) for own in trials.values()}) > 1:
            raise ValueError("every run gets the same number of trials")
        for run, own in trials.items():
            wrong = [key for knobs in own for key in knobs if key in Run.model_fields and key != "learning_rate"]
            if wrong:
                raise ValueError(f"{run}: {wrong[0]} is not a knob of a training; set it in the run")
            if len(own) == 1:
                raise ValueError(f"{run}: one trial chooses nothing; give two or more")
            if len({frozenset(knobs) for knobs in own}) > 1:
                raise ValueError(f"{run}: its trials name different knobs; give each a value in all of them")
        return trials
