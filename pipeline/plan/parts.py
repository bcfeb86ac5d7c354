"""The parts of params.yaml, typed: scales, settings, runs, trials. `params` puts them together and checks names."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pipeline.clients.setting import Kind, Unit
from pipeline.corpora.qmsum import DOMAINS
from pipeline.corpora.readers import CLIENT_OF
from pipeline.federated.algorithms.registry import ALGORITHMS, ALONE, ZEROSHOT

CLIENTS = (*DOMAINS, *CLIENT_OF.values())
RESERVED = ("server", "mean", "pooled")
"""Names that files and tables use themselves."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"

Scale = Literal["laptop", "full", "paper"]
AdapterKind = Literal["bottleneck", "lora"]
AdaptedPositions = Literal["targets", "all"]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


class Sizes(Strict):
    """What a scale decides; `added_rounds` come after `rounds` in a run that is prolonged."""

    learning_rate: float = Field(gt=0, lt=math.inf)
    train_fraction: float = Field(gt=0, le=1)
    validation_examples: int | None = Field(ge=1)
    rounds: int = Field(ge=1)
    added_rounds: int = Field(ge=2)
    source_tokens: int = Field(ge=16)
    target_tokens: int = Field(ge=2)


class ClientShare(Strict):
    """How much of one client's data a setting takes, where it differs from the others'."""

    train_fraction: float | None = Field(default=None, gt=0, le=1)
    validation_examples: int | None = Field(default=None, ge=1)
    test_examples: int | None = Field(default=None, ge=1)


class ClientCounts(Strict):
    """So many examples of each split for every client."""

    train: int = Field(ge=1)
    val: int = Field(ge=1)
    test: int = Field(ge=1)


class SettingSizes(Strict):
    """What a setting takes at one scale; what is not named is the scale's."""

    train_fraction: float | None = Field(default=None, gt=0, le=1)
    validation_examples: int | None = Field(default=None, ge=1)
    source_tokens: int | None = Field(default=None, ge=16)
    target_tokens: int | None = Field(default=None, ge=2)
    max_tokens: int | None = Field(default=None, ge=1)
    counts: ClientCounts | None = None
    only: dict[str, ClientShare] = {}


class SettingParams(Strict):
    """Who the clients are."""

    kind: Kind
    clients: list[str]
    of: list[str] = []
    unit: Unit = "example"
    own: bool = True
    sizes: dict[Scale, SettingSizes] = {}

    @model_validator(mode="after")
    def _known(self) -> SettingParams:
        parted = self.kind == "iid"
        if len(set(self.clients)) != len(self.clients):
            raise ValueError("clients: must name each once")
        if parted and (wrong := [name for name in self.clients if not is_client_name(name)]):
            raise ValueError(f"clients: {wrong[0]!r} is taken, or no name; use letters, digits, '_' and '-'")
        unknown = [name for name in (self.of if parted else self.clients) if name not in CLIENTS]
        if unknown:
            raise ValueError(f"unknown client {unknown[0]!r}; known: {', '.join(CLIENTS)}")
        if parted != bool(self.of):
            raise ValueError("`of` names the domains that kind: iid cuts up; no other kind has it")
        if not parted and "unit" in self.model_fields_set:
            raise ValueError("unit is what kind: iid deals out; no other kind has it")
        if self.kind != "domains" and "own" in self.model_fields_set:
            raise ValueError("own is of kind: domains alone: no other kind has own clients")
        for scale, sizes in self.sizes.items():
            if sizes.only and self.kind != "domains":
                raise ValueError(f"sizes.{scale}.only: is of kind: domains alone")
            if self.kind == "balanced" and (sizes.train_fraction or sizes.validation_examples):
                raise ValueError(f"sizes.{scale}: kind: balanced takes its numbers of examples from counts alone")
            strangers = [name for name in sizes.only if name not in self.clients]
            if strangers:
                raise ValueError(f"sizes.{scale}.only.{strangers[0]}: is no client of the setting")
        return self


def is_client_name(name: str) -> bool:
    """Whether a client can be called so: files of its adapters have their kind behind a dot."""
    return re.match(NAME, name) is not None and "." not in name and name not in RESERVED


class OwnClient(Strict):
    """A folder of one's own meetings, in QMSum's schema."""

    folder: Path


class Training(Strict):
    """A training's knobs, whatever its algorithm; a run can set them for itself."""

    rounds: int | None = Field(default=None, ge=1)
    patience: int = Field(ge=1)
    local_epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    clients_per_round: int | None = Field(default=None, ge=1)
    learning_rate: float | None = Field(default=None, gt=0, lt=math.inf)
    weight_decay: float = Field(ge=0)
    clip_norm: float = Field(gt=0)


class Run(Strict):
    """A row of the tables: a method, a setting, which of its models is scored.

    `decode: false` scores the references alone, and writes no summaries. `prolonged` adds the scale's `added_rounds`,
    and `late` names the clients that come in with the first of them. `rounds_share` scales `rounds`. `adapted_layers`,
    `dropout` and `adapted_positions: all` are what the store rules out: such a run makes no use of it.
    Other keys are `Training` knobs, or hyperparameters of the run's algorithm.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    method: str
    setting: str = "domains"
    evaluate: Literal["local", "server"] | None = None
    adapter: AdapterKind | None = None
    adapted_layers: int | None = Field(default=None, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    adapted_positions: AdaptedPositions = "targets"
    decode: bool = True
    prolonged: bool = False
    late: list[str] = []
    rounds_share: float = Field(default=1.0, gt=0, le=1)

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        if method not in (ZEROSHOT, *ALGORITHMS):
            raise ValueError(f"unknown method {method!r}; known: {', '.join((ZEROSHOT, *ALGORITHMS))}")
        return method

    @model_validator(mode="after")
    def _scored_model_exists(self) -> Run:
        alone = self.method in ALONE
        if self.evaluate == "server" and alone:
            raise ValueError(f"evaluate: server, but {self.method} has no server")
        if alone and (self.late or (self.model_extra or {}).get("clients_per_round")):
            raise ValueError(f"late and clients_per_round are of federated methods; {self.method} is none")
        extra = self.model_extra or {}
        if self.method == ZEROSHOT and self.model_fields_set - {"method", "setting", "decode"} | set(extra):
            raise ValueError(f"{ZEROSHOT} trains nothing, so it takes no knobs; remove them")
        if self.decode and (self.adapted_layers or self.dropout or self.adapted_positions == "all"):
            raise ValueError(
                "a run with dropout, its own adapted_layers or adapted prompts has no store; set decode: false"
            )
        if self.rounds_share != 1 and "rounds" in extra:
            raise ValueError("rounds_share is of the scale's rounds; a run with its own rounds has none")
        if self.late and not self.prolonged:
            raise ValueError("late clients come in with the added rounds; set prolonged: true")
        return self


class Search(Strict):
    """Fair tuning: the same number of settings of its knobs for each run, at a seed that no table reports."""

    seed: int = Field(ge=0)
    trials: dict[str, list[dict[str, Any]]]

    @field_validator("trials")
    @classmethod
    def _as_many_for_each(cls, trials: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
        if len({len(own) for own in trials.values()}) > 1:
            raise ValueError("every run gets the same number of trials")
        for run, own in trials.items():
            wrong = [key for knobs in own for key in knobs if key in Run.model_fields]
            if wrong:
                raise ValueError(f"{run}: {wrong[0]} is no knob of a training, so nothing to try")
        return trials
