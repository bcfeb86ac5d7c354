"""params.yaml, typed: an unknown key, a wrong type or range is a one-line error that names the key."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from pipeline.clients.setting import Counts, Setting, Share
from pipeline.corpora.qmsum import DOMAINS, SpanEnd
from pipeline.corpora.readers import CLIENT_OF
from pipeline.corpora.sources import CORPORA
from pipeline.errors import QuorumError
from pipeline.federated.algorithms.registry import ALONE
from pipeline.federated.objectives.threshold import Tau
from pipeline.model.presets import PRESETS
from pipeline.plan.parts import (
    CLIENTS,
    NAME,
    AdapterKind,
    OwnClient,
    Run,
    Scale,
    Search,
    SettingParams,
    SettingSizes,
    Sizes,
    Training,
    is_client_name,
)
from pipeline.workspace.layout import OWN, PARAMS


class Params(Training):
    """All of params.yaml."""

    corpora: list[str] = Field(min_length=1)
    queries: dict[str, str]
    tau: Tau
    weight: float = Field(ge=0, le=1, alias="lambda")
    local_start: Literal["own", "server"]
    scale: Scale
    seeds: list[int] = Field(min_length=1)
    device: Literal["auto", "cpu", "cuda"]
    data_source: Literal["auto", "mirror", "upstream", "sample"]
    span_end: SpanEnd
    own: dict[str, OwnClient]
    train_fraction: float | None = Field(gt=0, le=1)
    validation_examples: int | None = Field(ge=1)
    added_rounds: int | None = Field(ge=2)
    backbone: str
    adapted_layers: int | None = Field(ge=1)
    weights: Path | None
    adapter: AdapterKind
    bottleneck: int | None = Field(ge=1)
    lora_rank: int = Field(ge=1)
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
    topics: int = Field(ge=2)
    scales: dict[Scale, Sizes]
    settings: dict[str, SettingParams]
    runs: dict[str, Run] = Field(min_length=1)
    more_runs: dict[str, Run]
    studies: dict[str, list[str]]
    search: Search

    @field_validator("corpora")
    @classmethod
    def _published(cls, corpora: list[str]) -> list[str]:
        unknown = [corpus for corpus in corpora if corpus not in CORPORA]
        if unknown:
            raise ValueError(f"unknown corpus {unknown[0]!r}; known: {', '.join(CORPORA)}")
        if "qmsum" not in corpora or len(set(corpora)) != len(corpora):
            raise ValueError("must hold qmsum, and each corpus once")
        return corpora

    @field_validator("queries")
    @classmethod
    def _of_corpora(cls, queries: dict[str, str]) -> dict[str, str]:
        unknown = [corpus for corpus in queries if corpus not in CLIENT_OF]
        if unknown:
            raise ValueError(f"{unknown[0]}: is no corpus without queries; known: {', '.join(CLIENT_OF)}")
        return queries

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
        unasked = [corpus for corpus in self.corpora if corpus in CLIENT_OF and corpus not in self.queries]
        if unasked:
            raise ValueError(f"queries.{unasked[0]}: is missing, and {unasked[0]} has none of its own; add one")
        twice = set(self.runs) & set(self.more_runs)
        if twice:
            raise ValueError(f"more_runs.{min(twice)}: is a name of runs, too; choose another")
        for group, runs in (("runs", self.runs), ("more_runs", self.more_runs)):
            for name, run in runs.items():
                self._check_run(f"{group}.{name}", name, run)
        if self.search.seed in self.seeds:
            raise ValueError(f"search.seed: {self.search.seed} is a seed that tables report; choose another")
        self._check_own()
        self._check_main()
        if self.weights is not None and PRESETS[self.backbone].origin != "hub":
            raise ValueError(f"weights: {self.backbone} does not come from the model hub; set weights: null")
        self._check_decoding()
        return self

    def _check_main(self) -> None:
        """What the main table's runs have in common."""
        partitions = [self.setting_of(run.setting) for run in self.runs.values()]
        if len({tuple(sorted(setting.clients)) for setting in partitions}) > 1:
            raise ValueError("runs: the main table compares runs on the same clients; put the others into more_runs")
        if any(self.settings[run.setting].kind != "domains" or not run.decode for run in self.runs.values()):
            raise ValueError("runs: the main table is about summaries in a setting of kind domains; see more_runs")
        for name, run in self.runs.items():
            strangers = [client for client in self.settings[run.setting].clients if client not in DOMAINS]
            if strangers:
                where = f"runs.{name}.setting"
                raise ValueError(f"{where}: the main table is about QMSum, not {strangers[0]}; see more_runs")
            if (run.model_extra or {}).get("teacher", "server") != "server":
                raise ValueError(f"runs.{name}.teacher: its analyses are of the server's; put the run into more_runs")
            if any(share.test_examples for share in self.setting_of(run.setting).only.values()):
                raise ValueError(f"runs.{name}.setting: the main table tests on whole test sets; see more_runs")
            if (run.model_extra or {}).get("select", "entropy") != "entropy":
                raise ValueError(f"runs.{name}.select: its analyses are of the entropy; put the run into more_runs")

    def _check_decoding(self) -> None:
        longest = {"max_tokens": self.max_tokens} | {
            f"settings.{name}.sizes.{self.scale}.max_tokens": self.sizes_of(name).max_tokens for name in self.settings
        }
        for where, most in longest.items():
            if most is not None and self.min_tokens > most:
                raise ValueError(f"min_tokens: {self.min_tokens} is above {where}: {most}")
        if self.beams == 1 and self.length_penalty != 1.0:
            raise ValueError("length_penalty: is of beam search; set beams above 1, or length_penalty: 1.0")

    def _check_run(self, where: str, name: str, run: Run) -> None:
        if run.setting not in self.settings:
            raise ValueError(f"{where}.setting: no setting {run.setting!r}")
        setting = self.settings[run.setting]
        if not self.setting_of(run.setting).clients:
            raise ValueError(f"settings.{run.setting}.clients: is empty, and no own clients join them")
        for client in setting.of or setting.clients:
            corpus = next((c for c, holder in CLIENT_OF.items() if holder == client), "qmsum")
            if corpus not in self.corpora:
                raise ValueError(f"{where}: client {client} needs {corpus}; add it to corpora")
        if (self.sizes_of(run.setting).counts is None) == (setting.kind == "balanced"):
            where = f"settings.{run.setting}.sizes.{self.scale}.counts"
            raise ValueError(f"{where}: kind: balanced needs them, and no other kind has them")
        absent = [client for client in run.late if client not in setting.clients]
        if absent:
            raise ValueError(f"{where}.late: setting {run.setting} has no client {absent[0]!r}")
        if run.late and not set(self.setting_of(run.setting).clients) - set(run.late):
            raise ValueError(f"{where}.late: leaves no client to begin with; leave one out")
        training = self.training_of(name)
        if run.dropout and (run.adapter or self.adapter) == "lora":
            raise ValueError(f"{where}.dropout: lora has none; set adapter: bottleneck for this run, or dropout: 0")
        if run.prolonged and "rounds" in (run.model_extra or {}):
            raise ValueError(f"{where}.rounds: of a prolonged run is the scale's and added_rounds; set those")
        drawn = training.clients_per_round or math.inf
        everyone = not run.late and drawn >= len(self.setting_of(run.setting).clients)
        if (run.model_extra or {}).get("teacher") in ("initial", "others") and not everyone:
            raise ValueError(f"{where}: teacher: initial and others need every client in every round")

    def _check_own(self) -> None:
        for name, client in self.own.items():
            if name in CLIENTS or not is_client_name(name):
                raise ValueError(f"own.{name}: is taken or has a dot; choose another name")
            if not client.folder.is_relative_to(OWN) or ".." in client.folder.parts:
                raise ValueError(f"own.{name}.folder: {client.folder} is not inside {OWN}; put the meetings there")

    @property
    def all_runs(self) -> dict[str, Run]:
        return {**self.runs, **self.more_runs}

    def sizes(self) -> Sizes:
        """The scale's row, with every knob that is set by itself put over it."""
        row = self.scales[self.scale].model_dump()
        own = {name: getattr(self, name) for name in row}
        return Sizes(**(row | {name: value for name, value in own.items() if value is not None}))

    def sizes_of(self, setting: str) -> SettingSizes:
        """What a setting has of its own at this scale."""
        return self.settings[setting].sizes.get(self.scale, SettingSizes())

    def setting_of(self, name: str) -> Setting:
        """A setting as its partition needs it, own clients included."""
        wanted, sizes, own = self.settings[name], self.sizes(), self.sizes_of(name)
        share = Share(
            train_fraction=own.train_fraction or sizes.train_fraction,
            validation_examples=own.validation_examples or sizes.validation_examples,
        )
        joining = sorted(self.own) if wanted.kind == "domains" and wanted.own else []
        return Setting(
            kind=wanted.kind,
            clients=[*wanted.clients, *joining],
            share=share,
            of=wanted.of,
            unit=wanted.unit,
            counts=None if own.counts is None else Counts(**own.counts.model_dump()),
            only={
                client: Share(
                    train_fraction=only.train_fraction or share.train_fraction,
                    validation_examples=only.validation_examples or share.validation_examples,
                    test_examples=only.test_examples,
                )
                for client, only in own.only.items()
            },
        )

    def limits_of(self, name: str) -> tuple[int, int]:
        """(source tokens, target tokens) of a setting."""
        sizes, own = self.sizes(), self.sizes_of(name)
        return own.source_tokens or sizes.source_tokens, own.target_tokens or sizes.target_tokens

    def joins_of(self, name: str) -> dict[str, int]:
        """The round in which each late client of a run comes in."""
        run = self.all_runs[name]
        first = (self.training_of(name).rounds or 0) - self.sizes().added_rounds + 1
        return dict.fromkeys(run.late, first)

    def training_of(self, name: str) -> Training:
        """A run's training knobs: its own over the common ones that its method has.

        Raises:
            ValueError: a knob of the run is out of range; the message names it.
        """
        sizes, run = self.sizes(), self.all_runs[name]
        rounds = max(1, round(run.rounds_share * sizes.rounds)) + (sizes.added_rounds if run.prolonged else 0)
        common = {knob: getattr(self, knob) for knob in Training.model_fields}
        common |= {"rounds": rounds, "learning_rate": sizes.learning_rate}
        if run.prolonged:  # runs with added rounds are compared at equal rounds: none may stop early
            common["patience"] = rounds
        if run.method in ALONE:
            common["clients_per_round"] = None
        extras = self._extras(name).items()
        own = {key: value for key, value in extras if key in Training.model_fields and value is not None}
        try:
            return Training.model_validate(common | own)
        except ValidationError as error:
            raise ValueError(f"{self._where(name)}.{first_problem(error)}") from None

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
            raise QuorumError(f"{PARAMS}: {self._where(name)}.{first_problem(error)}; correct it") from None

    def _where(self, name: str) -> str:
        return f"runs.{name}" if name in self.runs else f"more_runs.{name}"

    def _extras(self, name: str) -> dict[str, Any]:
        return self.all_runs[name].model_extra or {}


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
    for group in ("runs", "more_runs", "studies", "own", "settings", "scales"):
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
    prefix = f"{where}: " if where else ""
    return f"{prefix}{message} (found {problem['input']!r:.60})"
