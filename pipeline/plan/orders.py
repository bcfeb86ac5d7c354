"""The order of each stage: a file in data/plan with everything that the stage's result depends on, and nothing else.

`code` maps the modules behind a stage to hashes of their code (see `plan.code`). `packages` maps the packages that can
change its result to their versions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.clients.folds import Fold
from pipeline.clients.kinds import AnySetting
from pipeline.clients.taking import Takes
from pipeline.corpora.options import Options
from pipeline.errors import QuorumError
from pipeline.federated.faults import Faults
from pipeline.federated.knobs import ClientOptimizer, Schedule
from pipeline.federated.tolerance import Tolerance
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.precision import Precision
from pipeline.workspace.files import read_json
from pipeline.workspace.layout import MORE, group_of, order
from pipeline.workspace.record import Record
from pipeline.workspace.words import nearest

REMEDY = "run `dvc repro plan`"
OPTIONAL: Any = Field(default=None, exclude_if=lambda value: value is None)
"""A knob that an order leaves out where it is None: older orders without the knob are the same orders."""


class Order(Record):
    """The fields that all orders have."""

    code: dict[str, str]
    packages: dict[str, str] = Field(default_factory=dict)


class OwnFolder(Record):
    """A user's meetings: their folder, and a hash of the files, so that a copy without the files notices a change."""

    folder: str
    meetings: str
    roles: bool


class IngestOrder(Order):
    """One corpus: which source, which files; for QMSum also the users' folders."""

    data_source: str
    checksums: str | None
    own: dict[str, OwnFolder]


class WeightsFolder(Record):
    """A local folder of weights, and a hash of its files' names, sizes and times, since reading them all is slow."""

    folder: str
    files: str


class BackboneOrder(Order):
    """Which weights, and their local folder; without one they come from the model hub."""

    backbone: str
    weights: WeightsFolder | None


class PrepareOrder(Order):
    """One data set: the task that reads it; a published source, or a user's file with a hash of its contents."""

    task: str
    source: str | None = None
    file: str | None = None
    contents: str | None = None
    options: Options


class PartitionOrder(Order):
    """One setting, on data sets of one task.

    Attributes:
        contents: a hash of a given partition's file.
        take: which examples of each split are used, by a setting that divides one data set.
        folds: seed -> which meetings are tested, where that is not the official split.
        batch: the largest batch of the setting's trainings, and their fewest local epochs; None without trainings.
        left_out: why it is not drawn.
    """

    task: str
    data: list[str]
    setting: AnySetting = Field(discriminator="kind")
    contents: str | None = None
    take: Takes = Field(default_factory=Takes)
    seeds: list[int]
    folds: dict[int, Fold] = Field(default_factory=dict)
    batch: tuple[int, int] | None = None
    left_out: str | None = None


class EncodeOrder(Order):
    """The texts that the frozen backbone reads, and the manifest on which each run of a group trains.

    `limits`: manifest -> (source tokens, target tokens). `uncached`: the runs that train without the
    store, so that their index has token ids. `left_out`: the runs that this backbone cannot train, which get no
    clients. `encoding`: a hash of the code that encodes and of its packages' versions; it is part of the store's keys.
    """

    task: str
    corpora: list[str]
    encoding: str
    device: str
    precision: Precision
    threads: int = Field(ge=1)
    adapted_layers: int
    manifests: dict[str, str]
    limits: dict[str, tuple[int, int]]
    uncached: list[str]
    left_out: list[str]


class CommonKnobs(Record):
    """The knobs of every training, of any algorithm, by their names in params.yaml; a run can set its own values."""

    rounds: int = Field(ge=1)
    patience: int = Field(ge=1)
    local_epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    clients_per_round: int | None = Field(ge=1)
    client_optimizer: ClientOptimizer
    client_schedule: Schedule
    weight_decay: float = Field(ge=0)
    clip_norm: float = Field(gt=0)
    faults: Faults | None = OPTIONAL
    tolerance: Tolerance | None = OPTIONAL


class FederatedKnobs(CommonKnobs):
    """The knobs of every training, of meetings or of texts.

    `threads`: of a process that computes; one and two differ in the last bits. `joins`: late client -> its first round.
    `weights`: client -> the weight of one of its examples in an average, where that is not 1. `keep_rounds`: whether
    every round's models are saved, for `audit`.
    """

    learning_rate: float = Field(gt=0)
    algorithm: str
    hyperparameters: dict[str, Any]
    seed: int
    device: str
    precision: Precision
    threads: int = Field(ge=1)
    joins: dict[str, int] = Field(default_factory=dict)
    weights: dict[str, float] = Field(default_factory=dict)
    keep_rounds: bool = False


class TrainingKnobs(FederatedKnobs):
    """All knobs of a training of meetings; see `Training` for its code.

    Either `bottleneck` or `lora_rank` is set: the kind of its adapters.
    """

    task: str
    adapted_layers: int
    bottleneck: int | None
    lora_rank: int | None
    dropout: float
    adapted_positions: Literal["targets", "all"]
    uncached: bool


class Training(TrainingKnobs):
    """One training. Runs that differ only in name, or in which of its models is scored, share it."""

    code: dict[str, str]
    packages: dict[str, str]


class TrainOrder(Order):
    """A run's training, and which of its models is evaluated; the untrained backbone has neither."""

    training: Training | None
    evaluate: Literal["local", "server"] | None


class GenerateOrder(Order):
    """How summaries are decoded; without a rule there are none, and only the loss is computed.

    `turns`: which turns of the source are the summaries, for methods without a model.
    """

    task: str
    corpora: list[str]
    device: str
    precision: Precision
    threads: int = Field(ge=1)
    adapted_layers: int
    rule: DecodingRule | None
    turns: Literal["lead", "random"] | None = OPTIONAL


class EvaluateOrder(Order):
    """How predictions are scored; turns of the source have no loss, since no model writes them."""

    task: str
    device: str
    precision: Precision
    threads: int = Field(ge=1)
    adapted_layers: int
    adapted_positions: Literal["targets", "all"]
    uncached: bool
    use_stemmer: bool
    turns: bool = Field(default=False, exclude_if=lambda value: not value)


class AnalyzeOrder(Order):
    """The runs whose teachers are analysed, those whose adapters are tested on all clients, and the manifests.

    `topics`: the number of clusters of the sources of all clients.
    """

    task: str
    corpora: list[str]
    device: str
    precision: Precision
    threads: int = Field(ge=1)
    adapted_layers: int
    distilling: list[str]
    crossed: list[str]
    manifests: list[str]
    topics: int


class RunRow(Record):
    """A run at one seed, as tables name it.

    `part`: what tables call it, its method; AdaFedAvg's clients before aggregation are a separate row. `orders`: the
    hash of all its orders. `fingerprint`: the hash of its knobs, setting and fold, which identifies a result
    independently of the code. `training`: None for the untrained backbone. `patience`: a training ends after so many
    rounds without improvement, unless it is prolonged.
    """

    id: str
    name: str
    seed: int
    method: str
    part: str
    setting: str
    orders: str
    fingerprint: str
    training: TrainingKnobs | None
    patience: int
    evaluate: Literal["local", "server"] | None


class MainOrder(Order):
    """What the main table and its page show and compute; `task` is the task's module."""

    task: str
    scale: str
    backbone: str
    precision: Precision
    span_end: str
    source_tokens: int
    target_tokens: int
    train_fraction: float
    validation_examples: int | None
    use_stemmer: bool
    sign_flips: int
    runs: list[RunRow]


class ReportOrder(MainOrder):
    """What the page on the paper shows and computes: `runs` are all, and `studies` names those of each figure."""

    corpora: list[str]
    studies: dict[str, list[str]]


AnyOrder = TypeVar("AnyOrder", bound=BaseModel)


def read_order(path: Path, kind: type[AnyOrder]) -> AnyOrder:
    """A stage's order.

    Raises:
        QuorumError: the file is missing, or is no such order.
    """
    data = read_json(path, remedy=REMEDY)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise QuorumError(f"{path}: not a {kind.__name__} ({where}: {error.errors()[0]['msg']}); {REMEDY}") from None


def planned_runs() -> list[RunRow]:
    """All planned runs, of both groups.

    Raises:
        QuorumError: there is no plan.
    """
    return read_order(order("report"), ReportOrder).runs


def planned_run(run_id: str) -> RunRow:
    """One planned run at one seed.

    Raises:
        QuorumError: it is not planned.
    """
    rows = planned_alike(run_id)
    found = next((row for row in rows if row.id == run_id), None)
    if found is None:
        near = nearest(run_id, (row.id for row in rows))
        raise QuorumError(f"{run_id}: no such run at this seed in params.yaml; the nearest are {near}")
    return found


def planned_alike(run_id: str) -> list[RunRow]:
    """The planned runs of a run's group."""
    if group_of(run_id) == MORE:
        return [row for row in planned_runs() if group_of(row.id) == MORE]
    return read_order(order("main"), MainOrder).runs
