"""The orders of the stages of an experiment on labelled texts; see `orders`."""

from __future__ import annotations

from pydantic import Field

from pipeline.clients.taking import Takes
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.frozen_part import Above
from pipeline.model.precision import Precision
from pipeline.plan.federations import Federation
from pipeline.plan.orders import FederatedKnobs, Order
from pipeline.plan.view import View
from pipeline.workspace.record import Record


class EncodeTextsOrder(Order):
    """One data set's texts, as every model of the experiment reads them; `seeds`: view -> the seeds of its runs.

    `encoding`: a hash of the code that encodes and of its packages' versions; it is part of the store's keys.
    """

    task: str
    views: dict[str, View]
    take: Takes
    seeds: dict[str, list[int]]
    device: str
    precision: Precision
    threads: int = Field(ge=1)
    encoding: str


class FederateOrder(Order):
    """Who holds which texts of a data set, at each seed; `contents`: a hash of a partition that is given."""

    dataset: str
    task: str
    skew: Federation
    contents: str | None
    take: Takes
    seeds: list[int]


class Learner(Record):
    """A model for a task: its view, what trains above the cut, and the seed of its initial values."""

    task: str
    view: View
    above: Above
    size: int | None
    seed: int
    device: str
    precision: Precision
    threads: int


class TextKnobs(FederatedKnobs):
    """All knobs of a training on labelled texts; see `Learner`."""

    task: str
    view: View
    above: Above
    size: int | None

    @property
    def learner(self) -> Learner:
        """The model that it trains."""
        return Learner(**{name: getattr(self, name) for name in Learner.model_fields})


class TextTraining(TextKnobs):
    """One training: its knobs, code and packages."""

    code: dict[str, str]
    packages: dict[str, str]


class TextTrainOrder(Order):
    """A run's training at each of its seeds; `untrained`: the initial model. `left_out`: it is of another scale."""

    dataset: str
    setting: str
    seeds: list[int]
    training: TextTraining
    untrained: bool
    left_out: bool


class TextEvaluateOrder(Order):
    """How a run's models are evaluated on test texts; `rule`: how they decode, for models that write."""

    dataset: str
    setting: str
    seeds: list[int]
    learner: Learner
    rule: DecodingRule | None
    left_out: bool


def is_called_after(run: str, setting: str) -> bool:
    """Whether a run's name begins with its setting's, by which the setting's table of methods finds it.

    >>> is_called_after("tc-fedavg", "tc"), is_called_after("tc-1-fedavg", "tc-1"), is_called_after("averaged", "tc")
    (True, True, False)
    """
    return run.startswith(f"{setting}-")


class TextRow(Record):
    """A run, as tables name it."""

    name: str
    dataset: str
    setting: str
    method: str
    seeds: list[int]
    training: TextKnobs
    untrained: bool
    orders: str


class TextPageOrder(Order):
    """What the experiment's page shows and computes; `published`: the data sets that are no user's file."""

    scale: str
    precision: Precision
    sign_flips: int
    datasets: dict[str, str]
    published: list[str]
    settings: dict[str, Federation]
    runs: list[TextRow]
    tables: dict[str, list[str]]
