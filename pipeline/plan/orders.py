"""The order of each stage: a file in data/plan with everything that the stage's result depends on, and nothing else.

`code` maps the modules behind a stage to hashes of their code (see `plan.code`). `packages` maps the packages that can
change its result to their versions. `left_out` says why a stage has nothing to do.
"""

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from pipeline.clients.folds import Fold
from pipeline.clients.kinds import AnySetting
from pipeline.clients.taking import Takes
from pipeline.corpora.catalog import Options
from pipeline.errors import QuorumError
from pipeline.federated.methods import Rule
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.precision import Precision
from pipeline.plan.learner import OPTIONAL, Learner, Reader, Training
from pipeline.workspace.files import empty_folder, read_json, write_json
from pipeline.workspace.layout import order
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json, Number, Record, first_problem
from pipeline.workspace.words import WHOLE, nearest

RougeTokens = Literal["latin", "unicode"]
REMEDY = "run `dvc repro plan`"
LEFT_OUT = "left_out.json"


class Order(Record):
    """What a stage's result depends on besides its inputs: the code, packages' versions, and what was skipped."""

    code: dict[str, str]
    packages: dict[str, str] = Field(default_factory=dict)
    left_out: str | None = OPTIONAL

    def says_left_out(self, item: str, folder: Path | None = None) -> bool:
        """Whether its stage has nothing to do, which is then printed, and is all that its folder has."""
        if self.left_out:
            say(f"{item}: left out: {self.left_out}")
            if folder is not None:
                empty_folder(folder)
                write_json(folder / LEFT_OUT, {"left_out": self.left_out})
        return self.left_out is not None


class TaskOrder(Order):
    """What reads examples: the task's module, and the data sets."""

    task: str
    data: list[str]


class RunOrder(TaskOrder):
    """What a run at its seeds is of."""

    setting: str
    seeds: list[int]


class OwnFolder(Record):
    """A user's meetings: their folder, and a hash of the files, so that a copy without the files notices a change."""

    folder: str
    meetings: str
    roles: bool
    query: str = Field(default=WHOLE, exclude_if=lambda query: query == WHOLE)  # of a summary that has none


class IngestOrder(Order):
    """One source, for QMSum with the users' folders; or a user's file, which stays where it is, and its hash."""

    data_source: str
    own: dict[str, OwnFolder] = Field(default_factory=dict)
    file: str | None = None
    contents: str | None = None


class WeightsFolder(Record):
    """A local folder of weights, and a hash of its files' names, sizes and times, since reading them all is slow."""

    folder: str
    files: str


class BackboneOrder(Order):
    """Which weights, and their local folder; without one they come from the model hub."""

    backbone: str
    weights: WeightsFolder | None


class PrepareOrder(Order):
    """One data set: the task that reads it, its source, or a user's file with a hash of its contents."""

    task: str
    source: str
    file: str | None = None
    contents: str | None = None
    options: Options


class PartitionOrder(TaskOrder):
    """One setting."""

    setting: AnySetting
    contents: str | None = None  # a hash of a given partition's file
    take: Takes = Field(default_factory=Takes)  # which examples a setting that divides one data set uses
    seeds: list[int]
    folds: dict[int, Fold] = Field(default_factory=dict)  # seed -> which meetings are tested
    batch: tuple[int, int] | None = None  # the largest batch of the trainings, and their fewest local epochs


class EncodeOrder(TaskOrder):
    """What the frozen backbones read of a setting's examples."""

    classes: list[str]  # the classes that params.yaml lists; without any, those of the training examples
    readers: dict[str, Reader]  # run -> the model that reads its examples
    seeds: dict[str, list[int]]  # run -> its seeds
    encoding: dict[str, str]  # run -> a hash of the code and packages that encode, part of the store's keys
    unread: list[str] = Field(default_factory=list)  # the runs that are left out, or need no model


class TrainOrder(Order):
    """A run's training at each of its seeds."""

    setting: str
    seeds: list[int]
    training: Training | None  # at its first seed; None where nothing trains
    keep_rounds: list[int]  # the seeds at which every round's models are saved
    learner: Learner | None  # the model; None for turns of the source
    evaluate: Literal["local", "server"] | None  # which models are evaluated
    evaluated: Literal["best", "last"]  # of which round

    def at(self, seed: int) -> Training | None:
        """The training at one of its seeds."""
        if self.training is None:
            return None
        return self.training.model_copy(update={"seed": seed, "keep_rounds": seed in self.keep_rounds})


class PredictOrder(RunOrder):
    """How a run's models predict."""

    learner: Learner | None
    rule: DecodingRule | None  # None for models that write no texts, or a run that has a loss alone
    decode: bool
    turns: Rule | None = OPTIONAL  # how a method without a model chooses turns or units


class EvaluateOrder(RunOrder):
    """How a run's predictions are scored."""

    learner: Learner | None
    use_stemmer: bool
    rouge_tokens: RougeTokens = Field(default="latin", exclude_if=lambda tokens: tokens == "latin")
    fingerprints: dict[Number, str]  # seed -> that of the result; see `RunRow`


class RunRow(Record):
    """A run at one seed, as tables name it."""

    id: str
    name: str
    seed: int
    method: str
    part: str  # what tables call it: its method; AdaFedAvg's clients before aggregation are a separate row
    setting: str
    data: list[str]
    learner: Learner | None
    fingerprint: str  # the hash of its knobs, setting and fold, which identifies a result
    training: Training | None  # None for a run that trains nothing
    patience: int  # a training ends after so many rounds without improvement, unless it is prolonged
    evaluate: Literal["local", "server"] | None
    left_out: str | None = OPTIONAL


class AnalyzeOrder(TaskOrder):
    """What is analysed."""

    settings: dict[str, list[int]]  # setting -> its seeds
    distilling: list[str]  # the runs whose teachers are analysed
    crossed: list[str]  # the runs whose adapters are tested on all clients
    partitions: list[str]  # those whose clients' data are compared
    topics: int  # the number of clusters of the sources of all clients
    sign_flips: int  # behind each interval


class ReportOrder(Order):
    """What the experiment's page shows and computes."""

    page: str
    scale: str
    precision: Precision
    sign_flips: int
    paper: str | None  # the file in data/ with the paper's numbers
    data: dict[str, str]  # data set -> its task's module
    published: list[str]  # the data sets that are no user's file
    settings: dict[str, AnySetting]
    knobs: Json  # those that the page names
    runs: list[RunRow]
    sections: dict[str, list[str]]  # table or figure -> its runs or settings
    backbone: str  # of the first run that has one; of turns of the source alone, that of their data


AnyOrder = TypeVar("AnyOrder", bound=Order)


def read_order(path: Path, kind: type[AnyOrder]) -> AnyOrder:
    """A stage's order; an error where the file is missing or no such order."""
    data = read_json(path, remedy=REMEDY)
    try:
        return kind.model_validate(data, strict=False)  # JSON has neither tuples nor integers as keys
    except ValidationError as error:
        raise QuorumError(f"{path}: not a {kind.__name__} ({first_problem(error)}); {REMEDY}") from None


def planned_runs() -> list[RunRow]:
    """All planned runs, a row a seed."""
    return read_order(order("report"), ReportOrder).runs


def planned_run(run_id: str) -> RunRow:
    """One planned run at one seed; an error where it is not planned."""
    rows = planned_runs()
    found = next((row for row in rows if row.id == run_id), None)
    if found is None:
        near = nearest(run_id, (row.id for row in rows))
        raise QuorumError(f"{run_id}: no such run at this seed in params.yaml; the nearest are {near}")
    return found
