"""params.yaml of an experiment on labelled texts, typed: data sets, federations on them, and runs.

A row of `scales` fills in the keys that are missing or null in the file, at any depth.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipeline.clients.setting import Count
from pipeline.clients.skews import Skew, Skewed
from pipeline.errors import QuorumError
from pipeline.federated.methods import ZEROSHOT
from pipeline.model.frozen_part import Above
from pipeline.plan.checks import check_rules
from pipeline.plan.orders import CommonKnobs
from pipeline.plan.run import Method
from pipeline.plan.schema import check_names, over, read_yaml
from pipeline.plan.text_datasets import Dataset
from pipeline.plan.text_grids import TextTune
from pipeline.workspace.layout import PARAMS
from pipeline.workspace.record import Record, first_problem

TABLES = ("methods", "partitions", "cuts", "sizes", "natural")
"""The tables of the page of labelled texts: the first lists settings, the others runs."""
Scale = Literal["laptop", "full"]


class TextRun(Record):
    """A method on a federation.

    `seeds`: its seeds, if not those of its data set or the file. `at`: the one scale that has it. `frozen`, `backbone`
    and `layers` (those used of the backbone) are the data set's unless they are set. `above`: what trains above the
    cut; `size`: m of a bottleneck or r of LoRA. Other keys are a training's common knobs, or
    hyperparameters of the run's algorithm.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    method: Method
    setting: str
    seeds: list[int] | None = Field(default=None, min_length=1)
    frozen: str | None = None
    backbone: str | None = None
    layers: list[int] | None = Field(default=None, min_length=1)
    above: Above = "layers"
    size: Count | None = None
    at: Scale | None = None
    learning_rate: float | None = Field(default=None, gt=0)

    @property
    def knobs(self) -> dict[str, Any]:
        """The knobs that it sets; null sets only a knob that may be null."""
        extra = self.model_extra or {}
        return {name: value for name, value in extra.items() if value is not None or name == "clients_per_round"}


class TextParams(CommonKnobs):
    """All of the file, with its scale's values filled in."""

    page: Literal["fednlp", "faults"] = "fednlp"
    scale: Scale
    seeds: list[int] = Field(min_length=1)
    device: Literal["auto", "cpu", "cuda"]
    precision: Literal["auto", "fp32", "bf16"]
    threads: Count | None = None
    data_source: Literal["auto", "mirror", "upstream", "sample"]
    alpha: float = Field(gt=0)
    tau: float | str
    weight: float = Field(ge=0, le=1, alias="lambda")
    local_start: Literal["own", "server"]
    sign_flips: int = Field(ge=100)
    backbones: list[str]
    datasets: dict[str, Dataset]
    settings: dict[str, Skew]
    runs: dict[str, TextRun]
    tables: dict[str, list[str]] = Field(default_factory=dict)
    tune: TextTune = Field(default_factory=TextTune)

    @model_validator(mode="after")
    def _fits_together(self) -> TextParams:
        if not self.runs:
            raise ValueError("runs: names none; add one")
        for name, data in self.datasets.items():
            data.check(f"datasets.{name}")
        for name, setting in self.settings.items():
            if setting.data not in self.datasets:
                known = ", ".join(self.datasets)
                raise ValueError(f"settings.{name}.data: no data set {setting.data!r}; known: {known}")
        for name, run in self.runs.items():
            if run.setting not in self.settings:
                known = ", ".join(self.settings)
                raise ValueError(f"runs.{name}.setting: no setting {run.setting!r}; known: {known}")
            there = self.datasets[self.settings[run.setting].data].seeds or self.seeds
            if strange := sorted(set(run.seeds or ()) - set(there)):
                raise ValueError(f"runs.{name}.seeds: {strange[0]} is none of its data set's or the file's seeds")
            self._check_model(name)
        used = {data.backbone for data in self.datasets.values()}
        used |= {run.backbone for run in self.runs.values() if run.backbone}
        if used != set(self.backbones):
            raise ValueError(f"backbones: must name those that are used: {', '.join(sorted(used))}")
        self._check_tables()
        self._check_tuning()
        return self

    def _check_tables(self) -> None:
        if self.page == "fednlp" and (unknown := sorted(set(self.tables) - set(TABLES))):
            raise ValueError(f"tables: {unknown[0]!r} is none of {', '.join(TABLES)}")
        for table, names in self.tables.items():
            known, what = (self.settings, "setting") if table == "methods" else (self.runs, "run")
            if strange := [name for name in names if name not in known]:
                raise ValueError(f"tables.{table}: {strange[0]!r} is no {what}")
        for table in ("partitions", "cuts", "sizes"):
            for name in self.tables.get(table, ()):
                self._check_compared(table, name)

    def _check_compared(self, table: str, name: str) -> None:
        """Check that a run has the same task as the first of its table, whose columns are the task's metrics."""
        first = self.tables[table][0]
        if self.data_of(name).task != self.data_of(first).task:
            raise ValueError(f"tables.{table}: {name} and {first} are of two tasks, whose scores cannot be compared")
        if table == "partitions" and self.runs[name].method == ZEROSHOT:
            raise ValueError(f"tables.partitions: {name} is not trained, and has no curve to compare")

    def _check_model(self, name: str) -> None:
        """Check that a run's model can do the task of its data set, and has the parts that the run trains."""
        run, data = self.runs[name], self.data_of(name)
        if (run.above == "layers") != (run.size is None):
            raise ValueError(f"runs.{name}.size: is of bottleneck and lora alone, which need one")
        try:
            data.check_backbone(run.backbone or data.backbone)
        except ValueError as error:
            raise ValueError(f"runs.{name}.{error}") from None
        own = {"frozen": run.frozen, "layers": run.layers, "size": run.size}
        data.check_cut(f"runs.{name}", {key: value for key, value in own.items() if value is not None})

    def _check_tuning(self) -> None:
        """Check the grids of `tune`, and that their runs are on their data sets."""
        tune = self.tune
        if tune.grids() and tune.seed in {
            *self.seeds,
            *(seed for data in self.datasets.values() for seed in data.seeds or ()),
        }:
            raise ValueError(f"tune.seed: {tune.seed} is a seed that tables report; choose another")
        for where, (run, grid) in tune.grids().items():
            if run not in self.runs:
                raise ValueError(f"tune.{where}: no run {run!r}")
            if len(set(grid)) < 2 or min(grid) <= 0:
                raise ValueError(f"tune.{where}: a grid needs two values or more, above 0")
        for group, of_data in (("rates", tune.rates), ("knobs", tune.knobs)):
            for data, grids in of_data.items():
                for name, (run, _) in grids.items():
                    if self.settings[self.runs[run].setting].data != data:
                        raise ValueError(f"tune.{group}.{data}.{name}: run {run} is not on data set {data}")

    def data_of(self, name: str) -> Dataset:
        """A run's data set."""
        return self.datasets[self.settings[self.runs[name].setting].data]

    def seeds_of(self, name: str) -> list[int]:
        """A run's seeds: its own, else its data set's, else the file's."""
        return self.runs[name].seeds or self.data_of(name).seeds or self.seeds

    @property
    def runs_of_scale(self) -> list[str]:
        """The runs of this scale."""
        return [name for name, run in self.runs.items() if run.at in (None, self.scale)]

    def skew_of(self, name: str) -> Skew:
        """A setting, with the file's `alpha` where it has neither skew nor `spread`."""
        skew = self.settings[name]
        if isinstance(skew, Skewed) and skew.alpha is None and skew.beta is None and not skew.spread:
            return skew.model_copy(update={"alpha": self.alpha})
        return skew

    def training_of(self, name: str) -> CommonKnobs:
        """A run's common knobs: its own over its data set's over the file's.

        Raises:
            QuorumError: a knob of the run is out of range.
        """
        data, run = self.data_of(name), self.runs[name]
        common = {knob: getattr(self, knob) for knob in CommonKnobs.model_fields}
        common |= {knob: getattr(data, knob) for knob in ("rounds", "clients_per_round", "batch_size")}
        own = {knob: value for knob, value in run.knobs.items() if knob in CommonKnobs.model_fields}
        try:
            training = CommonKnobs.model_validate(common | own)
            check_rules(f"runs.{name}", training, training.clients_per_round or math.inf)
        except ValidationError as error:
            raise QuorumError(f"{PARAMS}: runs.{name}.{first_problem(error)}; correct it") from None
        except ValueError as error:
            raise QuorumError(f"{PARAMS}: {error}") from None
        return training

    def hyperparameters_of(self, name: str, known: type[BaseModel]) -> BaseModel:
        """An algorithm's hyperparameters: the run's own, else its data set's, the file's, the algorithm's defaults.

        Raises:
            QuorumError: a key of the run is no knob of its training or its algorithm, or is out of range.
        """
        names = [field.alias or key for key, field in known.model_fields.items()]
        here = {"tau": self.tau, "lambda": self.weight, "local_start": self.local_start}
        given = {key: value for key, value in here.items() if key in names}
        given |= self.data_of(name).knobs.get(self.runs[name].method, {})
        own = {k: v for k, v in self.runs[name].knobs.items() if k not in CommonKnobs.model_fields}
        try:
            return known.model_validate(given | own)
        except ValidationError as error:
            raise QuorumError(f"{PARAMS}: runs.{name}.{first_problem(error)}; correct it") from None


def read_text_params(path: Path = PARAMS) -> TextParams:
    """Parse and check params.yaml of an experiment on labelled texts.

    Raises:
        QuorumError: the file is missing, not YAML, or a key is unknown, missing, of a wrong type or out of range.
    """
    data = read_yaml(path)
    for group in ("datasets", "settings", "runs", "tables"):
        check_names(path, group, data.get(group))
    chosen = data.setdefault("scale", "laptop")
    scales = data.pop("scales", {chosen: {}})
    if not isinstance(scales, dict) or chosen not in scales:
        raise QuorumError(f"{path}: scale: {chosen!r} is not in scales; add it there, or correct it")
    found = {}
    for scale, under in scales.items():
        where = "" if scale == chosen else f"at scale {scale}: "
        try:
            found[scale] = TextParams.model_validate(over(under, data) | {"scale": scale})
        except ValidationError as error:
            raise QuorumError(f"{path}: {where}{first_problem(error)}; correct it") from None
    return found[chosen]


def is_of_texts(path: Path = PARAMS) -> bool:
    """Whether a params.yaml is of an experiment on labelled texts."""
    return "datasets" in read_yaml(path)
