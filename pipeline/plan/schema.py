"""params.yaml, typed: what is learned on which data, who the clients are, which methods run, and how they are tuned.

A key that is missing or null has its value from the scale's row of `scales`, else its default here. Values are of the
data set before those of the file, and of the run before those of the data set.
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, PositiveFloat, ValidationError, field_validator, model_validator

from pipeline.clients.folds import Fold
from pipeline.clients.kinds import AnySetting
from pipeline.clients.setting import Balanced, Count, Domains, Fraction, Iid, Share
from pipeline.clients.skews import Skewed
from pipeline.errors import QuorumError
from pipeline.federated.objectives.threshold import Tau, Threshold
from pipeline.model.frozen_part import Above
from pipeline.plan.learner import CommonKnobs
from pipeline.plan.orders import RougeTokens
from pipeline.plan.rows import Data, Queries, Rates, Run
from pipeline.workspace.layout import PARAMS
from pipeline.workspace.record import FilePath, Json, Number, Record, first_problem


def first_of(key: str, *owners: object) -> Any:
    """The value at a key of the first owner that has one, else None."""
    return next((value for owner in owners if (value := getattr(owner, key, None)) is not None), None)


class Search(Record):
    """One grid for all runs of a search, so that every method has as many trials."""

    grid: list[float] = Field(min_length=2)  # and one more beyond an end at which some best value is
    chooses: dict[str, str] = Field(min_length=1)  # key of params.yaml -> the run that is trained with each value

    @field_validator("grid")
    @classmethod
    def _ascending(cls, grid: list[float]) -> list[float]:
        if grid != sorted(set(grid)) or grid[0] < 0:
            raise ValueError("needs values from 0 on, each once, the lowest first")
        return grid


class Tune(Record):
    """Searches in their order, at a seed that no table reports: each has what the searches before it chose."""

    seed: int = Field(default=1000, ge=0)
    searches: dict[str, Search] = Field(default_factory=dict)


class OwnClient(Record):
    """A user's data: one more client, or an organisation of a federation."""

    folder: FilePath | None = None  # of meetings, in any format that is read
    file: FilePath | None = None  # of labelled texts: a CSV or JSONL with the columns of the task
    roles: bool = False  # whether speakers' names in meetings are replaced
    queries: str | None = None  # the row of `queries` in the language of its meetings; None: the first

    @model_validator(mode="after")
    def _has_one(self) -> OwnClient:
        if (self.folder is None) is (self.file is None):
            raise ValueError("needs a folder of meetings or a file of texts")
        return self

    @property
    def path(self) -> Path:
        """The folder or the file."""
        return self.folder or self.file or Path()


class Params(CommonKnobs):
    """All of params.yaml, with its scale's values filled in; see `plan.rows` and `clients.setting`.

    `plan.checks` says how its parts must fit together.

    Attributes:
        page: which tables and figures the experiment's page has: main (runs by client), tour (main, with the committed
            result beside it), paper (the first paper's), tasks (methods by data set), faults.
        paper: the file in the root's data/ with the paper's numbers.
        scale: a row of `scales`, or just a name if there are none.
        omit: runs that the scale leaves out; patterns as in `bbc-*` are names, too.
        seeds: each run is trained once a seed, which draws examples, initial tensors and batches.
        keep_rounds: the seeds at which the models of every round are saved in work/rounds.
        folds: seed -> which meetings of QMSum are tested; official is QMSum's own split.
        precision: of products with frozen weights; auto is bf16 where the machine multiplies it natively.
        threads: of a process that trains; None: OMP_NUM_THREADS, else one a core. They move the last bits of results.
        data_source: where published sources come from; auto takes the first that answers.
        sources: all that data sets use.
        backbones: all that runs use.
        own: name -> a user's data; a folder of meetings is one more client in settings of kind domains and balanced.
        queries: language -> the queries that nobody wrote, as in `de: {whole: Fasse die Sitzung zusammen.}`.
        device: where models are computed.
        backbone: of all runs, unless a data set or a run has its own.
        source_tokens: the most tokens that are read of an example, its prompt included.
        target_tokens: the most tokens that are learned of what a model writes, its end token included.
        weights: a local folder with the backbone's weights, in the hub's file layout.
        train_fraction: of every published domain's client, in settings of kind domains and iid; a user's has all.
        validation_examples: of every client, in settings of kind domains and iid.
        alpha: of skewed settings that leave theirs open: labels are drawn from Dir(alpha times their shares).
        adapted_layers: N, the layers of a language model, from above, that have adapters; None: the preset's.
        above: what trains above the frozen part; None: bottlenecks in a language model, all layers of an encoder.
        size: m of a bottleneck or r of LoRA; None: the preset's, or 8.
        evaluated: whether a client's best round by its validation loss is evaluated, or the last round.
        added_rounds: of prolonged runs.
        learning_rate: of all runs; None: their family's in `rates`.
        tau: of selective distillation, in nats, or a quantile as in q0.88; see AdaFedSelectKD.
        weight: of the distillation term; see AdaFedKD.
        local_start: whether clients of methods that distil start a round from their own adapter or the server's.
        beams: of beam search; 1 is greedy.
        length_penalty: beam scores are divided by length ** length_penalty.
        no_repeat_ngram: no n-gram of this size twice in a text; 0 allows all.
        min_tokens: at least so many are written before the end token.
        max_tokens: at most so many are written, the end token among them.
        use_stemmer: whether ROUGE compares stems; the paper's tool does not.
        rouge_tokens: latin: ROUGE compares runs of a-z and 0-9, as the paper's tool; unicode: words of any language.
        sign_flips: random signs of groups behind each interval and p.
        topics: clusters of sources, over which clients are compared.
        sections: table or figure of the page -> its runs, or its settings.
    """

    page: Literal["tour", "main", "paper", "tasks", "faults"] = "main"
    paper: str | None = None
    scale: str
    omit: list[str] = Field(default_factory=list)
    seeds: list[int] = Field(min_length=1)
    keep_rounds: list[int] = Field(default_factory=list)
    folds: dict[Number, Fold] = Field(default_factory=dict)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    threads: int | None = Field(default=None, ge=1, le=256)

    data_source: Literal["auto", "mirror", "upstream", "sample"] = "auto"
    sources: list[str]
    backbones: list[str]
    own: dict[str, OwnClient] = Field(default_factory=dict)
    queries: dict[str, Queries] = Field(default_factory=dict)
    train_fraction: Fraction = 1.0
    validation_examples: Count | None = None
    alpha: PositiveFloat = 1.0

    backbone: str | None = None
    weights: FilePath | None = None
    adapted_layers: Count | None = None
    above: Above | None = None
    size: Count | None = None
    source_tokens: int | None = Field(default=None, ge=16)
    target_tokens: int | None = Field(default=None, ge=2)

    evaluated: Literal["best", "last"] = "best"
    added_rounds: int = Field(default=2, ge=2)
    learning_rate: PositiveFloat | None = None
    rates: Rates = Field(default_factory=Rates)
    tau: Tau = Threshold.parse(5.0)
    weight: float = Field(default=0.2, ge=0, le=1, alias="lambda")
    local_start: Literal["own", "server"] = "server"

    beams: Count = 1
    length_penalty: float = 1.0
    no_repeat_ngram: int = Field(default=3, ge=0)
    min_tokens: int = Field(default=0, ge=0)
    max_tokens: Count = 128

    use_stemmer: bool = False
    rouge_tokens: RougeTokens = "latin"
    sign_flips: int = Field(default=10_000, ge=100)
    topics: int = Field(default=20, ge=2)

    data: dict[str, Data] = Field(min_length=1)
    settings: dict[str, AnySetting]
    runs: dict[str, Run] = Field(min_length=1)
    sections: dict[str, list[str]] = Field(default_factory=dict)
    tune: Tune = Field(default_factory=Tune)

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds) or min(seeds) < 0:
            raise ValueError("seeds must be distinct and not negative")
        return seeds

    @cached_property
    def runs_of_scale(self) -> list[str]:
        """The runs of this scale."""
        return [name for name in self.runs if not any(fnmatchcase(name, pattern) for pattern in self.omit)]

    @property
    def own_meetings(self) -> dict[str, Path]:
        """Own client -> its folder of meetings, by name."""
        return {name: own.folder for name, own in sorted(self.own.items()) if own.folder is not None}

    def queries_of(self, client: str) -> Queries:
        """The queries in a client's language."""
        named = self.own[client].queries if client in self.own else None
        return self.queries[named] if named else next(iter(self.queries.values()), Queries())

    def data_of(self, name: str) -> Data:
        """A run's data set; of several, the first, since several have no knobs of their own."""
        return self.data[self.settings[self.runs[name].setting].data_sets[0]]

    def value_of(self, name: str, key: str) -> Any:
        """A run's value of a key: its own, else its setting's, its data set's, or the file's; None if none has one."""
        run = self.runs[name]
        return first_of(key, run, self.settings[run.setting], self.data_of(name), self)

    def seeds_of(self, name: str) -> list[int]:
        """A run's seeds."""
        return list(self.value_of(name, "seeds"))

    def setting_of(self, name: str) -> AnySetting:
        """A setting as its partition needs it: the file's values filled in, own clients joined, limits left out."""
        wanted = self.settings[name]
        filled: Json = dict.fromkeys(("source_tokens", "target_tokens", "max_tokens"))
        if isinstance(wanted, Domains | Iid):
            filled["train_fraction"] = wanted.train_fraction or self.train_fraction
            filled["validation_examples"] = wanted.validation_examples or self.validation_examples
        if isinstance(wanted, Balanced) or (isinstance(wanted, Domains) and wanted.own):
            filled["clients"] = [*wanted.clients, *self.own_meetings]
        if isinstance(wanted, Domains) and wanted.own and not wanted.train_fraction and self.train_fraction < 1:
            filled["only"] = dict.fromkeys(self.own_meetings, Share(train_fraction=1.0)) | wanted.only
        if isinstance(wanted, Skewed) and wanted.alpha is None and wanted.beta is None and not wanted.spread:
            filled["alpha"] = self.alpha
        return wanted.model_copy(update=filled)

    def clients_of(self, name: str) -> float:
        """The number of a run's clients; infinite where the data alone tell."""
        clients = getattr(self.setting_of(self.runs[name].setting), "clients", None)
        return clients if isinstance(clients, int) else len(clients or ()) or math.inf

    def training_of(self, name: str) -> CommonKnobs:
        """A run's common knobs: its own over its data set's over the file's; a ValueError where one is wrong."""
        run, data = self.runs[name], self.data_of(name)
        common = {knob: first_of(knob, data, self) for knob in CommonKnobs.model_fields}
        common["rounds"] = max(1, round(run.rounds_share * common["rounds"])) + run.prolonged * self.added_rounds
        if run.prolonged:  # runs with added rounds are compared at equal rounds: none may stop early
            common["patience"] = common["rounds"]
        own = {knob: value for knob, value in run.knobs.items() if knob in CommonKnobs.model_fields}
        try:
            return CommonKnobs.model_validate(common | own)
        except ValidationError as error:
            raise ValueError(f"runs.{name}.{first_problem(error)}") from None

    def hyperparameters_of(self, name: str, known: type[BaseModel]) -> BaseModel:
        """An algorithm's hyperparameters, of class `known`: the run's, its data set's, the file's, or the default."""
        names = [field.alias or key for key, field in known.model_fields.items()]
        if taken := [name for name in names if name in (*Run.model_fields, *CommonKnobs.model_fields)]:
            raise QuorumError(f"{known.__module__}: {taken[0]}: is a knob of all runs; choose another name")
        run = self.runs[name]
        of_file = {"tau": self.tau, "lambda": self.weight, "local_start": self.local_start}
        given = {key: value for key, value in of_file.items() if key in getattr(known, "of_file", ()) and key in names}
        given |= self.data_of(name).knobs.get(run.method, {})
        own = {key: value for key, value in run.knobs.items() if key not in CommonKnobs.model_fields}
        try:
            return known.model_validate(given | own)
        except ValidationError as error:
            raise QuorumError(f"{PARAMS}: runs.{name}.{first_problem(error, names)}; correct it") from None
