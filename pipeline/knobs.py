"""The parts of params.yaml, typed: scales, settings, runs, trials. `params` puts them together and checks names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pipeline.corpora.qmsum import DOMAINS
from pipeline.corpora.readers import CLIENT_OF
from pipeline.federated.registry import ALGORITHMS, ZEROSHOT
from pipeline.partitions.setting import Counts, Kind, Unit

CLIENTS = (*DOMAINS, *CLIENT_OF.values())
ALONE = (ZEROSHOT, "AdaSingle", "AdaCentralized")
"""Methods without a server."""


Scale = Literal["laptop", "full", "paper"]


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


class SettingSizes(Strict):
    """What a setting takes at one scale; what is not named is the scale's."""

    train_fraction: float | None = Field(default=None, gt=0, le=1)
    validation_examples: int | None = Field(default=None, ge=1)
    source_tokens: int | None = Field(default=None, ge=16)
    target_tokens: int | None = Field(default=None, ge=2)
    max_tokens: int | None = Field(default=None, ge=1)
    counts: Counts | None = None
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
    dropout: float = Field(ge=0, lt=1)
    adapted_positions: Literal["targets", "all"]
    clip_norm: float = Field(gt=0)


class Run(Strict):
    """A row of the tables: a method, a setting, which of its models is scored.

    `decode: false` scores the references alone, and writes no summaries. `prolonged` adds the scale's `added_rounds`,
    and `late` names the clients that come in with the first of them. `rounds_share` scales `rounds`.
    Other keys are `Training` knobs, or hyperparameters of the run's algorithm.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    method: str
    setting: str = "domains"
    evaluate: Literal["local", "server"] | None = None
    adapter: Literal["bottleneck", "lora"] | None = None
    adapted_layers: int | None = Field(default=None, ge=1)
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
        if self.decode and (self.adapted_layers or extra.get("dropout") or extra.get("adapted_positions") == "all"):
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
        return trials
