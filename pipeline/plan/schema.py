"""params.yaml, typed: an unknown key, a wrong type or range is a one-line error that names the key.

A row of `scales` has values for keys that are null in the file, and `sizes` of a setting has its values at a scale. A
key that is set in the file or the setting has priority over both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator

from pipeline.clients.folds import Fold
from pipeline.clients.setting import NAME, Count, Domains, Fraction, Iid, Limited, Setting
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.qmsum import SpanEnd
from pipeline.corpora.sources import CORPORA
from pipeline.errors import QuorumError
from pipeline.federated.objectives.threshold import Tau
from pipeline.model.presets import PRESETS
from pipeline.plan.orders import CommonKnobs
from pipeline.plan.run import AdapterKind, Rates, Run, Tune
from pipeline.tasks import TASKS
from pipeline.tasks.task import load_task
from pipeline.workspace.layout import PARAMS
from pipeline.workspace.record import Record, first_problem

Scale = Literal["laptop", "full", "paper"]

GLOBAL = ("tau", "lambda", "local_start")
"""The hyperparameters at the top of params.yaml, for all runs whose algorithm has them."""


class OwnClient(Record):
    """A user's folder of meetings, in any format that is read; `roles`: whether speakers' names are replaced."""

    folder: Path
    roles: bool = False


class Params(CommonKnobs):
    """All of params.yaml, with its scale's values filled in."""

    task: str
    scale: Scale
    seeds: list[int] = Field(min_length=1)
    keep_rounds: list[int]
    folds: dict[int, Fold]
    device: Literal["auto", "cpu", "cuda"]
    precision: Literal["auto", "fp32", "bf16"]
    threads: Count | None = None

    corpora: list[str] = Field(min_length=1)
    data_source: Literal["auto", "mirror", "upstream", "sample"]
    span_end: SpanEnd
    own: dict[str, OwnClient]
    queries: dict[str, str]
    train_fraction: Fraction
    validation_examples: Count | None

    backbone: str
    weights: Path | None
    adapted_layers: Count | None
    adapter: AdapterKind
    bottleneck: Count | None
    lora_rank: Count
    source_tokens: int = Field(ge=16)
    target_tokens: int = Field(ge=2)

    added_rounds: int = Field(ge=2)
    learning_rate: float | None = Field(gt=0)
    learning_rates: Rates
    tau: Tau
    weight: float = Field(ge=0, le=1, alias="lambda")
    local_start: Literal["own", "server"]

    beams: Count
    length_penalty: float
    no_repeat_ngram: int = Field(ge=0)
    min_tokens: int = Field(ge=0)
    max_tokens: Count

    use_stemmer: bool
    sign_flips: int = Field(ge=100)
    topics: int = Field(ge=2)

    settings: dict[str, Setting]
    runs: dict[str, Run]
    more_runs: dict[str, Run]
    studies: dict[str, list[str]]
    tune: Tune

    @field_validator("task", "backbone")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        known: Collection[str] = TASKS if info.field_name == "task" else PRESETS
        if value not in known:
            raise ValueError(f"unknown {info.field_name} {value!r}; known: {', '.join(known)}")
        if info.field_name == "task" and load_task(TASKS[value]).kind is not Conversation:
            raise ValueError(f"{value} is not a task on conversations; use it in an experiment with datasets")
        return value

    @field_validator("corpora")
    @classmethod
    def _published(cls, corpora: list[str]) -> list[str]:
        unknown = [corpus for corpus in corpora if corpus not in CORPORA]
        if unknown:
            raise ValueError(f"unknown corpus {unknown[0]!r}; known: {', '.join(CORPORA)}")
        if "qmsum" not in corpora or len(set(corpora)) != len(corpora):
            raise ValueError("must hold qmsum, and each corpus once")
        return corpora

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds) or min(seeds) < 0:
            raise ValueError("seeds must be distinct and not negative")
        return seeds

    @model_validator(mode="after")
    def _fits_together(self) -> Params:
        from pipeline.plan.checks import check

        check(self)
        return self

    @property
    def all_runs(self) -> dict[str, Run]:
        """Name -> run, of the main table and the others."""
        return {**self.runs, **self.more_runs}

    def where(self, name: str) -> str:
        """The key of a run, for messages."""
        return f"runs.{name}" if name in self.runs else f"more_runs.{name}"

    def setting_of(self, name: str) -> Setting:
        """A setting as its partition needs it: shares filled, own clients joined, limits in tokens left out."""
        wanted = self.settings[name]
        filled: dict[str, Any] = dict.fromkeys(("source_tokens", "target_tokens", "max_tokens"))
        if isinstance(wanted, Domains | Iid):
            filled["train_fraction"] = wanted.train_fraction or self.train_fraction
            filled["validation_examples"] = wanted.validation_examples or self.validation_examples
        if isinstance(wanted, Domains) and wanted.own:
            filled["clients"] = [*wanted.clients, *sorted(self.own)]
        return wanted.model_copy(update=filled)

    def has_seed(self, name: str, seed: int) -> bool:
        """Whether a run has a seed; at other seeds it is left out."""
        own = self.all_runs[name].seeds
        return own is None or seed in own

    def is_lora(self, name: str) -> bool:
        """Whether a run's adapters are LoRA's: PEFT's layers apply them."""
        return (self.all_runs[name].adapter or self.adapter) == "lora"

    def limits_of(self, name: str) -> tuple[int, int]:
        """(source tokens, target tokens) of a setting."""
        own: Limited = self.settings[name]
        return own.source_tokens or self.source_tokens, own.target_tokens or self.target_tokens

    def weights_of(self, name: str) -> dict[str, float]:
        """Client -> the weight of one of its examples in an average, where that is not 1."""
        setting = self.setting_of(self.all_runs[name].setting)
        return setting.weights if isinstance(setting, Domains) else {}

    def joins_of(self, name: str) -> dict[str, int]:
        """Late client of a run -> the round in which it joins."""
        return dict.fromkeys(self.all_runs[name].late, self.training_of(name).rounds - self.added_rounds + 1)

    def training_of(self, name: str) -> CommonKnobs:
        """A run's common knobs: its own over those of the file that its method has.

        Raises:
            ValueError: a knob of the run is out of range; the message names it.
        """
        run = self.all_runs[name]
        rounds = max(1, round(run.rounds_share * self.rounds)) + (self.added_rounds if run.prolonged else 0)
        common = {knob: getattr(self, knob) for knob in CommonKnobs.model_fields} | {"rounds": rounds}
        if run.prolonged:  # runs with added rounds are compared at equal rounds: none may stop early
            common["patience"] = rounds
        own = {knob: value for knob, value in run.knobs.items() if knob in CommonKnobs.model_fields}
        try:
            return CommonKnobs.model_validate(common | own)
        except ValidationError as error:
            raise ValueError(f"{self.where(name)}.{first_problem(error)}") from None

    def hyperparameters_of(self, name: str, known: type[BaseModel]) -> BaseModel:
        """An algorithm's hyperparameters: the run's own, else the global ones, else the algorithm's defaults.

        Args:
            known: the algorithm's `Hyperparameters`, whose names are those of params.yaml.

        Raises:
            QuorumError: a key of the run is no knob of its training or its algorithm, or is out of range.
        """
        names = [field.alias or key for key, field in known.model_fields.items()]
        if taken := [name for name in names if name in (*Run.model_fields, *CommonKnobs.model_fields)]:
            raise QuorumError(f"{known.__module__}: {taken[0]}: is a knob of all runs; choose another name")
        here = self.model_dump(by_alias=True)
        own = {key: value for key, value in self.all_runs[name].knobs.items() if key not in CommonKnobs.model_fields}
        try:
            return known.model_validate({key: here[key] for key in GLOBAL if key in names} | own)
        except ValidationError as error:
            problem = first_problem(error, names)
            raise QuorumError(f"{PARAMS}: {self.where(name)}.{problem}; correct it") from None


def read_params(path: Path = PARAMS) -> Params:
    """Parse and check params.yaml.

    Raises:
        QuorumError: the file is missing, not YAML, or a key is unknown, missing, of a wrong type or out of range.
    """
    data = read_extended(path)
    for group in ("runs", "more_runs", "studies", "own", "settings"):
        check_names(path, group, data.get(group))
    scales = data.get("scales") if isinstance(data.get("scales"), dict) else {}
    for where, scale in [("scale", data.get("scale")), *((f"scales.{one}", one) for one in scales or ())]:
        if scale not in get_args(Scale):
            known = ", ".join(get_args(Scale))
            raise QuorumError(f"{path}: {where}: unknown scale {scale!r}; known: {known}; correct it")
    chosen = _checked(path, data, data.get("scale"), "")
    # The others too: a mistake in them should not wait until they are chosen.
    for scale in (one for one in scales or () if one != chosen.scale):
        _checked(path, data, scale, f"at scale {scale}: ")
    return chosen


def _checked(path: Path, data: Mapping[str, Any], scale: Any, where: str) -> Params:
    try:
        return Params.model_validate(_filled(path, data, scale))
    except ValidationError as error:
        raise QuorumError(f"{path}: {where}{first_problem(error)}; correct it") from None


def read_extended(path: Path) -> dict[str, Any]:
    """The keys of a file, with the keys and settings of the file that it `extends` filled in."""
    data = read_yaml(path)
    base = data.pop("extends", None)
    if base is None:
        return data
    under = read_extended(path.parent / str(base))
    settings = [table for table in (under.get("settings"), data.get("settings")) if isinstance(table, dict)]
    return {**under, **data, "settings": {name: setting for table in settings for name, setting in table.items()}}


def read_yaml(path: Path) -> dict[str, Any]:
    """The keys of a YAML file.

    Raises:
        QuorumError: the file is missing, not UTF-8, not YAML, or has no keys.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise QuorumError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; run from the repository's root") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise QuorumError(f"{path}: {where}not YAML: {getattr(error, 'problem', error)}; correct it") from None
    if not isinstance(data, dict):
        raise QuorumError(f"{path}: holds no keys; restore it from git")
    return data


def _filled(path: Path, data: Mapping[str, Any], scale: Any) -> dict[str, Any]:
    """The file's keys, with the scale's values filled in, at the top and in the settings."""
    scales = data.get("scales")
    found = over(scales.get(scale) if isinstance(scales, dict) else None, data) | {"scale": scale}
    found.pop("scales", None)
    settings = found.get("settings")
    if isinstance(settings, dict):
        found["settings"] = {name: _sized(path, name, setting, scale) for name, setting in settings.items()}
    return found


def _sized(path: Path, name: str, setting: Any, scale: Any) -> Any:
    if not isinstance(setting, dict) or not isinstance(setting.get("sizes", {}), dict):
        return setting
    unknown = [one for one in setting.get("sizes", {}) if one not in get_args(Scale)]
    if unknown:
        known = ", ".join(get_args(Scale))
        raise QuorumError(f"{path}: settings.{name}.sizes.{unknown[0]}: unknown scale; known: {known}; correct it")
    own = {key: value for key, value in setting.items() if key != "sizes"}
    return over(setting.get("sizes", {}).get(scale), own)


def over(under: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """`data`, with missing and null keys filled in from `under`, at any depth."""
    found: dict[str, Any] = dict(data)
    for key, value in under.items() if isinstance(under, dict) else ():
        own = found.get(key)
        if own is None:
            found[key] = value
        elif isinstance(own, dict) and isinstance(value, dict):
            found[key] = over(value, own)
    return found


def check_names(path: Path, group: str, table: Any) -> None:
    """Check the names in a table of a file.

    Raises:
        QuorumError: a name has other characters than letters, digits, '.', '_' and '-'.
    """
    for name in table if isinstance(table, dict) else ():
        if not isinstance(name, str) or not re.match(NAME, name):
            raise QuorumError(f"{path}: {group}: {name!r} is not a valid name; use letters, digits, '.', '_' and '-'")
