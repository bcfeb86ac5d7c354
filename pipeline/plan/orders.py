"""What each stage is told: a file of data/plan, holding only what that stage's result depends on.

`code` maps the modules behind a stage to hashes of their code (see `closure`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.clients.setting import Setting
from pipeline.errors import QuorumError
from pipeline.model.decoding_rule import DecodingRule
from pipeline.workspace.files import read_json
from pipeline.workspace.layout import MORE, group_of, stage_spec

REMEDY = "run `dvc repro plan`"


class Spec(BaseModel):
    """The base of all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: dict[str, str]


class OwnFolder(BaseModel):
    """One's own meetings: where they lie, and a hash of them, by which a copy without them sees one change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str
    meetings: str


class IngestSpec(Spec):
    """One corpus: which source, which files; for QMSum also which folders of one's own."""

    data_source: str
    checksums: str | None
    own: dict[str, OwnFolder]


class WeightsFolder(BaseModel):
    """A local folder of weights, and a hash of its files' names, sizes and times: to read gigabytes would take long."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str
    files: str


class BackboneSpec(Spec):
    """Which weights, and a folder that holds them where they are not to come from the model hub."""

    backbone: str
    weights: WeightsFolder | None


class PrepareSpec(Spec):
    """One corpus: how QMSum's spans are read and which own clients there are, or what stands for a query."""

    span_end: Literal["inclusive", "exclusive"] | None = None
    own: list[str] = []
    query: str | None = None


class PartitionSpec(Spec):
    """The settings that a group of runs uses."""

    settings: dict[str, Setting]
    seeds: list[int]


class EncodeSpec(Spec):
    """What the frozen backbone reads, and which manifest each run of a group trains on.

    `limits`: manifest -> (source tokens, target tokens). `uncached`: the runs whose index holds token ids, since they
    train without the store. `left_out`: the runs that this backbone cannot make, which get no clients.
    """

    device: str
    adapted_layers: int
    manifests: dict[str, str]
    limits: dict[str, tuple[int, int]]
    uncached: list[str]
    left_out: list[str]


class TrainKnobs(BaseModel):
    """What a training is told, its code aside.

    One of `bottleneck` and `lora_rank` is set, which says of which kind its adapters are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    algorithm: str
    hyperparameters: dict[str, Any]
    seed: int
    device: str
    adapted_layers: int
    bottleneck: int | None
    lora_rank: int | None
    rounds: int
    patience: int
    clients_per_round: int | None
    joins: dict[str, int]
    local_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    dropout: float
    adapted_positions: Literal["targets", "all"]
    uncached: bool
    clip_norm: float


class TrainSpec(TrainKnobs):
    """One training: everything but what its tables call it and which of its models they score."""

    code: dict[str, str]


class TrainStageSpec(Spec):
    """A run's training, and which model it hands on; the untrained backbone has neither."""

    training: TrainSpec | None
    evaluate: Literal["local", "server"] | None


class GenerateSpec(Spec):
    """How summaries are decoded; without a rule there are none, and the references alone are scored."""

    device: str
    adapted_layers: int
    rule: DecodingRule | None


class EvaluateSpec(Spec):
    """How predictions are scored."""

    device: str
    adapted_layers: int
    adapted_positions: Literal["targets", "all"]
    uncached: bool
    use_stemmer: bool


class AnalyzeSpec(Spec):
    """Which runs' teachers, which runs' adapters on all test sets, and which manifests are looked into.

    `topics`: how many clusters the sources of all clients are divided into. `tested`: the run on whose test sets the
    rows for orientation are scored.
    """

    device: str
    adapted_layers: int
    distilling: list[str]
    crossed: list[str]
    manifests: list[str]
    topics: int
    tested: str
    use_stemmer: bool


class RunRow(BaseModel):
    """A run at one seed, as tables name it.

    `kind`: its part in tables and tests, which is its method; but AdaFedAvg's clients before aggregation are a row of
    their own. `spec`: the hash of all its specs. `training`: None of the untrained backbone.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    name: str
    seed: int
    method: str
    kind: str
    setting: str
    spec: str
    training: TrainKnobs | None
    evaluate: Literal["local", "server"] | None


class MainSpec(Spec):
    """What the main table and its report say and compute."""

    scale: str
    backbone: str
    span_end: str
    source_tokens: int
    target_tokens: int
    train_fraction: float
    validation_examples: int | None
    bootstrap_samples: int
    permutation_samples: int
    runs: list[RunRow]


class ReportSpec(MainSpec):
    """What the page on the whole paper says and computes: `runs` are all, and `studies` names those of each figure."""

    corpora: list[str]
    studies: dict[str, list[str]]


AnySpec = TypeVar("AnySpec", bound=BaseModel)


def read_spec(path: Path, kind: type[AnySpec]) -> AnySpec:
    """A stage's spec.

    Raises:
        QuorumError: the file is missing or not such a spec.
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
    return read_spec(stage_spec("report"), ReportSpec).runs


def planned_alike(run_id: str) -> list[RunRow]:
    """The planned runs of a run's group: `dvc repro main` knows nothing of the others."""
    if group_of(run_id) == MORE:
        return [row for row in planned_runs() if group_of(row.id) == MORE]
    return read_spec(stage_spec("main"), MainSpec).runs
