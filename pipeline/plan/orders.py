"""What each stage is told: a file of data/plan, holding only what that stage's result depends on.

`code` maps the modules behind a stage to hashes of their code (see `plan.code`), `packages` those that can
change its result to their versions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.clients.folds import Fold
from pipeline.clients.setting import Setting
from pipeline.errors import QuorumError
from pipeline.federated.faults import Faults
from pipeline.federated.knobs import ClientOptimizer, Schedule
from pipeline.federated.tolerance import Tolerance
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.precision import Precision
from pipeline.workspace.files import read_json
from pipeline.workspace.layout import MORE, group_of, order
from pipeline.workspace.record import Record

REMEDY = "run `dvc repro plan`"
UNLESS_ASKED: Any = Field(default=None, exclude_if=lambda value: value is None)
"""A knob that most trainings do without: an order without it is the same order as before there was such a knob."""


class Order(Record):
    """The base of all."""

    code: dict[str, str]
    packages: dict[str, str] = Field(default_factory=dict)


class OwnFolder(Record):
    """One's own meetings: where they lie, and a hash of them, by which a copy without them sees one change."""

    folder: str
    meetings: str
    roles: bool


class IngestOrder(Order):
    """One corpus: which source, which files; for QMSum also which folders of one's own."""

    data_source: str
    checksums: str | None
    own: dict[str, OwnFolder]


class WeightsFolder(Record):
    """A local folder of weights, and a hash of its files' names, sizes and times: to read gigabytes would take long."""

    folder: str
    files: str


class BackboneOrder(Order):
    """Which weights, and a folder that holds them where they are not to come from the model hub."""

    backbone: str
    weights: WeightsFolder | None


class PrepareOrder(Order):
    """One corpus: how QMSum's spans are read and which own clients there are, or what stands for a query."""

    task: str
    span_end: Literal["inclusive", "exclusive"] | None = None
    own: list[str] = Field(default_factory=list)
    query: str | None = None


class PartitionOrder(Order):
    """The settings that a group of runs uses.

    `folds`: seed -> which meetings are tested, where that is not the official split. `batches`: setting -> the largest
    batch of its trainings, and their local epochs; none of a setting in which nothing is trained.
    """

    corpora: list[str]
    settings: dict[str, Setting]
    seeds: list[int]
    folds: dict[int, Fold]
    batches: dict[str, tuple[int, int]]


class EncodeOrder(Order):
    """What the frozen backbone reads, and which manifest each run of a group trains on.

    `limits`: manifest -> (source tokens, target tokens). `uncached`: the runs whose index holds token ids, since they
    train without the store. `left_out`: the runs that this backbone cannot make, which get no
    clients. `encoding`: a hash of the code that encodes and of the versions of what it calls, by which the store knows
    its entries.
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
    """A training's knobs, whatever its algorithm; names are those of params.yaml, and a run can set them for itself."""

    rounds: int = Field(ge=1)
    patience: int = Field(ge=1)
    local_epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    clients_per_round: int | None = Field(ge=1)
    client_optimizer: ClientOptimizer
    client_schedule: Schedule
    weight_decay: float = Field(ge=0)
    clip_norm: float = Field(gt=0)
    faults: Faults | None = UNLESS_ASKED
    tolerance: Tolerance | None = UNLESS_ASKED


class FederatedKnobs(CommonKnobs):
    """What every training is told, whatever model it trains.

    `threads`: of a process that computes; one and two differ in the last bits. `weights`: client -> how many examples
    one of its stands for in an average, where that is not one. `keep_rounds`: whether every round's models stay, for
    `audit`.
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
    """What a training is told, its code aside.

    One of `bottleneck` and `lora_rank` is set, which says of which kind its adapters are.
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
    """A run's training, and which model it hands on; the untrained backbone has neither."""

    training: Training | None
    evaluate: Literal["local", "server"] | None


class GenerateOrder(Order):
    """How summaries are decoded; without a rule there are none, and the references alone are scored.

    `turns`: which turns of the source are the summaries, where no model writes them.
    """

    task: str
    corpora: list[str]
    device: str
    precision: Precision
    threads: int = Field(ge=1)
    adapted_layers: int
    rule: DecodingRule | None
    turns: Literal["lead", "random"] | None = UNLESS_ASKED


class EvaluateOrder(Order):
    """How predictions are scored; turns of the source have no model, and so no loss."""

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
    """Which runs' teachers, which runs' adapters on all test sets, and which manifests are looked into.

    `topics`: how many clusters the sources of all clients are divided into.
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

    `part`: what it plays in tables and tests, which is its method; AdaFedAvg's clients before aggregation are a row of
    their own. `orders`: the hash of all its orders. `fingerprint`: the hash of its knobs, setting and fold, by which
    a result is known whatever code computes it. `training`: None of the untrained backbone. `patience`: after so many
    rounds without improvement a training ends, unless it is prolonged.
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
    """What the main table and its report say and compute; `task` is the module of what is learned."""

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
    """What the page on the whole paper says and computes: `runs` are all, and `studies` names those of each figure."""

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
        raise QuorumError(f"run {run_id!r} is not in params.yaml; there are {', '.join(row.id for row in rows)}")
    return found


def planned_alike(run_id: str) -> list[RunRow]:
    """The planned runs of a run's group: `dvc repro main` knows nothing of the others."""
    if group_of(run_id) == MORE:
        return [row for row in planned_runs() if group_of(row.id) == MORE]
    return read_order(order("main"), MainOrder).runs
