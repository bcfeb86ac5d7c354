"""What each stage is told: a file of data/plan, holding only what that stage's result depends on.

`code` maps the modules behind a stage to hashes of their code (see `closure`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.errors import QuorumError
from pipeline.files import read_json
from pipeline.model.decoding_rule import DecodingRule

REMEDY = "run `dvc repro plan`"


class Spec(BaseModel):
    """The base of all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: dict[str, str]


class IngestSpec(Spec):
    """Which source; which folders of one's own."""

    data_source: str
    own: dict[str, str]


class BackboneSpec(Spec):
    """Which weights."""

    backbone: str


class PrepareSpec(Spec):
    """How spans are read; which own clients there are."""

    span_end: Literal["inclusive", "exclusive"]
    own: list[str]


class PartitionSpec(Spec):
    """The settings that runs use, and how much of each split is taken."""

    settings: dict[str, dict[str, Any]]
    own: list[str]
    seeds: list[int]
    train_fraction: float
    validation_examples: int | None


class EncodeSpec(Spec):
    """What the frozen backbone reads, and which manifest each run trains on."""

    device: str
    adapted_layers: int
    source_tokens: int
    target_tokens: int
    manifests: dict[str, str]


class TrainSpec(Spec):
    """One training: everything but what its tables call it and which of its models they score."""

    algorithm: str
    hyperparameters: dict[str, Any]
    seed: int
    device: str
    adapted_layers: int
    bottleneck: int
    rounds: int
    patience: int
    local_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    clip_norm: float


class TrainStageSpec(Spec):
    """A run's training, and which model it hands on; the untrained backbone has neither."""

    training: TrainSpec | None
    evaluate: Literal["local", "server"] | None


class GenerateSpec(Spec):
    """How summaries are decoded."""

    device: str
    adapted_layers: int
    rule: DecodingRule


class EvaluateSpec(Spec):
    """How predictions are scored."""

    device: str
    adapted_layers: int
    use_stemmer: bool


class RunRow(BaseModel):
    """A run at one seed, as tables name it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    name: str
    seed: int
    method: str
    setting: str
    spec: str
    params: dict[str, Any]

    @property
    def kind(self) -> str:
        """Its part in tables and tests: AdaFedAvg's clients before aggregation are a row of their own."""
        local = self.method == "AdaFedAvg" and self.params.get("evaluate") == "local"
        return f"{self.method}-local" if local else self.method


class MainSpec(Spec):
    """What the main table and its report say and compute."""

    scale: str
    backbone: str
    span_end: str
    source_tokens: int
    target_tokens: int
    train_fraction: float
    validation_examples: int | None
    tau: float
    bootstrap_samples: int
    permutation_samples: int
    runs: list[RunRow]


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
