"""params.yaml, typed: an unknown key, a wrong type or range is a one-line error that names the key."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pipeline.corpora.qmsum import DOMAINS, SpanEnd
from pipeline.errors import QuorumError
from pipeline.federated.registry import ALGORITHMS, ZEROSHOT
from pipeline.layout import OWN, PARAMS
from pipeline.model.presets import PRESETS

RESERVED = ("server", "mean", "pooled")
"""Names that files and tables use themselves."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


class Sizes(_Strict):
    """What a scale decides."""

    learning_rate: float = Field(gt=0, lt=math.inf)
    train_fraction: float = Field(gt=0, le=1)
    validation_examples: int | None = Field(ge=1)
    rounds: int = Field(ge=1)
    source_tokens: int = Field(ge=16)
    target_tokens: int = Field(ge=2)


class Setting(_Strict):
    """Who the clients are."""

    kind: Literal["domains"]
    clients: list[str]

    @field_validator("clients")
    @classmethod
    def _known(cls, clients: list[str]) -> list[str]:
        unknown = [client for client in clients if client not in DOMAINS]
        if unknown:
            raise ValueError(f"unknown client {unknown[0]!r}; QMSum's are {', '.join(DOMAINS)}")
        return clients


class OwnClient(_Strict):
    """A folder of one's own meetings, in QMSum's schema."""

    folder: Path


class Training(_Strict):
    """A training's knobs, whatever its algorithm; a run can set them for itself."""

    rounds: int | None = Field(default=None, ge=1)
    patience: int = Field(ge=1)
    local_epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float | None = Field(default=None, gt=0, lt=math.inf)
    weight_decay: float = Field(ge=0)
    clip_norm: float = Field(gt=0)


class Run(_Strict):
    """A row of the tables: a method, a setting, which of its models is scored.

    Other keys are `Training` knobs, or hyperparameters of the run's algorithm.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    method: str
    setting: str = "domains"
    evaluate: Literal["local", "server"] | None = None

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        if method not in (ZEROSHOT, *ALGORITHMS):
            raise ValueError(f"unknown method {method!r}; known: {', '.join((ZEROSHOT, *ALGORITHMS))}")
        return method

    @model_validator(mode="after")
    def _scored_model_exists(self) -> Run:
        if self.evaluate == "server" and self.method in (ZEROSHOT, "AdaSingle", "AdaCentralized"):
            raise ValueError(f"evaluate: server, but {self.method} has no server")
        return self


class Params(Training):
    """All of params.yaml."""

    tau: float = Field(ge=0)
    weight: float = Field(ge=0, le=1, alias="lambda")
    local_start: Literal["own", "server"]
    scale: Literal["laptop", "full", "paper"]
    seeds: list[int] = Field(min_length=1)
    device: Literal["auto", "cpu", "cuda"]
    data_source: Literal["auto", "mirror", "upstream", "sample"]
    span_end: SpanEnd
    own: dict[str, OwnClient]
    train_fraction: float | None = Field(gt=0, le=1)
    validation_examples: int | None = Field(ge=1)
    backbone: str
    adapted_layers: int | None = Field(ge=1)
    bottleneck: int | None = Field(ge=1)
    source_tokens: int | None = Field(ge=16)
    target_tokens: int | None = Field(ge=2)
    beams: int = Field(ge=1)
    length_penalty: float
    no_repeat_ngram: int = Field(ge=0)
    min_tokens: int = Field(ge=0)
    max_tokens: int = Field(ge=1)
    use_stemmer: bool
    bootstrap_samples: int = Field(ge=100)
    permutation_samples: int = Field(ge=100)
    scales: dict[str, Sizes]
    settings: dict[str, Setting]
    runs: dict[str, Run] = Field(min_length=1)

    @field_validator("backbone")
    @classmethod
    def _preset(cls, backbone: str) -> str:
        if backbone not in PRESETS:
            raise ValueError(f"unknown backbone {backbone!r}; known: {', '.join(PRESETS)}")
        return backbone

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds) or min(seeds) < 0:
            raise ValueError("seeds must be distinct and not negative")
        return seeds

    @model_validator(mode="after")
    def _names(self) -> Params:
        if self.scale not in self.scales:
            raise ValueError(f"scale: {self.scale!r} has no row in scales")
        for name, run in self.runs.items():
            if run.setting not in self.settings:
                raise ValueError(f"runs.{name}.setting: no setting {run.setting!r}")
            if not self.settings[run.setting].clients and not self.own:
                raise ValueError(f"settings.{run.setting}.clients: is empty, and there are no own clients")
            self.training_of(name)
        for name, client in self.own.items():
            if name in (*DOMAINS, *RESERVED) or "." in name:
                raise ValueError(f"own.{name}: is taken or has a dot; choose another name")
            if not client.folder.is_relative_to(OWN) or ".." in client.folder.parts:
                raise ValueError(f"own.{name}.folder: {client.folder} is not inside {OWN}; put the meetings there")
        if len({tuple(sorted(self.settings[run.setting].clients)) for run in self.runs.values()}) > 1:
            raise ValueError("runs: the main table compares runs on the same clients; give all runs one setting")
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens: {self.min_tokens} is above max_tokens: {self.max_tokens}")
        return self

    def sizes(self) -> Sizes:
        """The scale's row, with every knob that is set by itself put over it."""
        row = self.scales[self.scale].model_dump()
        own = {name: getattr(self, name) for name in row}
        return Sizes(**(row | {name: value for name, value in own.items() if value is not None}))

    def training_of(self, name: str) -> Training:
        """A run's training knobs: its own over the common ones.

        Raises:
            ValueError: a knob of the run is out of range; the message names it.
        """
        sizes = self.sizes()
        of_scale = {"rounds": sizes.rounds, "learning_rate": sizes.learning_rate}
        common = {knob: getattr(self, knob) for knob in Training.model_fields} | of_scale
        extras = self._extras(name).items()
        own = {key: value for key, value in extras if key in Training.model_fields and value is not None}
        try:
            return Training.model_validate(common | own)
        except ValidationError as error:
            raise ValueError(f"runs.{name}.{first_problem(error)}") from None

    def hyperparameters_of(self, name: str, known: type[BaseModel]) -> BaseModel:
        """An algorithm's hyperparameters: the run's own, else those of this file, else the algorithm's defaults.

        Args:
            known: the algorithm's `Hyperparameters`, whose names are those of params.yaml.

        Raises:
            QuorumError: a key of the run is no knob of its training or its algorithm, or is out of range.
        """
        names = [field.alias or key for key, field in known.model_fields.items()]
        here = self.model_dump(by_alias=True)
        own = {key: value for key, value in self._extras(name).items() if key not in Training.model_fields}
        try:
            return known.model_validate({key: here[key] for key in names if key in here} | own)
        except ValidationError as error:
            raise QuorumError(f"{PARAMS}: runs.{name}.{first_problem(error)}; correct it") from None

    def _extras(self, name: str) -> dict[str, Any]:
        return self.runs[name].model_extra or {}


def read_params(path: Path = PARAMS) -> Params:
    """Parse and check params.yaml.

    Raises:
        QuorumError: the file is missing, not YAML, or a key is unknown, missing, of a wrong type or out of range.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise QuorumError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; run from the repository's root") from None
    except yaml.YAMLError as error:
        raise QuorumError(f"{path}: not YAML: {' '.join(str(error).split())}; correct it") from None
    if not isinstance(data, dict):
        raise QuorumError(f"{path}: holds no keys; restore it from git")
    for group in ("runs", "own", "settings", "scales"):
        _check_names(path, group, data.get(group))
    try:
        return Params.model_validate(data)
    except ValidationError as error:
        raise QuorumError(f"{path}: {first_problem(error)}; correct it") from None


def _check_names(path: Path, group: str, table: Any) -> None:
    for name in table if isinstance(table, dict) else ():
        if not isinstance(name, str) or not re.match(NAME, name):
            raise QuorumError(f"{path}: {group}: {name!r} is no name; use letters, digits, '.', '_' and '-'")


def first_problem(error: ValidationError) -> str:
    problems = error.errors()
    # A misspelt key is both unknown and missing; the name that was written helps more.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown key"
    if problem["type"] == "missing":
        return f"{where}: is missing"
    if problem["type"] == "value_error" and not where:
        return message
    return f"{where}: {message} (found {problem['input']!r:.60})"
