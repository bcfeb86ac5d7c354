"""The interface of a task: how a corpus's records are read and rendered, what a model predicts, how it is scored.

A task is one module with a `TASK`, and one line in `pipeline.tasks`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from pipeline.corpora.example import Example
from pipeline.model.decoding_rule import DecodingRule

if TYPE_CHECKING:  # torch takes seconds, which stages that only read or score save
    from pipeline.model.backbone import Backbone, Head, Limits, Prefix, Rendered, Row


@dataclass(frozen=True)
class Metric:
    """A figure of an example's prediction or of its reference, its title in tables, and which direction is better.

    `better`: None where neither is. `digits`: decimals in tables. `ranked`: whether tables mark the best value; they do
    not for a mere symptom. `over`: the figure of the references that tables show next to its mean. `per`: the figure
    that counts what an example's value is a sum over, where a mean over examples would have wrong weights. `sought`:
    the part of that count which is in the references; where it is 0, there is nothing to find and no score.
    """

    name: str
    title: str
    unit: str
    better: Literal["more", "less"] | None
    digits: int
    ranked: bool = True
    over: str | None = None
    per: str | None = None
    sought: str | None = None

    @property
    def sign(self) -> int:
        """-1 where less is better, else 1."""
        return -1 if self.better == "less" else 1


@dataclass(frozen=True)
class Prediction:
    """A model's text for an example; `ended`: by the model, not by the limit on its length."""

    text: str
    ended: bool = True


LOSS = Metric("loss", "test loss", "nats a token", "less", 3)
"""The loss of the reference, which every task has."""


class Task(Protocol):
    """Functions without state."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """Metrics of predictions; runs are compared by the first."""

    def read(self, record: Example) -> Example | None:
        """A corpus's record as an example of this task; None where it is none."""

    def render(self, backbone: Backbone, example: Example, limits: Limits) -> Rendered:
        """The token ids that the model reads, and those that it learns to predict."""

    def head(self, backbone: Backbone) -> Head:
        """The layer from hidden states at the targets' positions (..., width) to logits in fp32 (..., classes)."""

    def predict(
        self, backbone: Backbone, prefixes: Sequence[Prefix], rows: Sequence[Row], rule: DecodingRule
    ) -> list[Prediction]:
        """A prediction for each row."""

    def score(
        self, references: Sequence[str], predictions: Sequence[Prediction], *, use_stemmer: bool
    ) -> list[Mapping[str, float]]:
        """Every metric of each example.

        Raises:
            QuorumError: two libraries disagree about a score.
        """


def load_task(module: str) -> Task:
    """The task that a module defines."""
    task: Task = importlib.import_module(module).TASK
    return task
