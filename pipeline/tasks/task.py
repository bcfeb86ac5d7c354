"""What a task is: how a corpus's records are read and shown to a model, what its head predicts, how that is scored.

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
    """A figure of one example's prediction, or of its reference: what tables call it, and which way is better.

    `better`: None where neither more nor less is. `digits`: behind the point, in tables. `ranked`: whether tables mark
    the best, which of a mere symptom they do not. `over`: the figure of the references that its mean is shown over.
    `per`: what an example's figure is a sum over, where a mean over examples would weigh them wrongly. `sought`: what
    of that the reference alone holds; where it is nowhere, nothing can be found, and nobody is judged.
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
        return -1 if self.better == "less" else 1


@dataclass(frozen=True)
class Prediction:
    """What a model made of an example, as text; `ended`: by itself, not by the limit on its length."""

    text: str
    ended: bool = True


LOSS = Metric("loss", "test loss", "nats a token", "less", 3)
"""Of the reference: every task has it."""


class Task(Protocol):
    """Plain functions; a task holds no state."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """Of predictions, the one by which runs are compared first."""

    def read(self, record: Example) -> Example | None:
        """A corpus's record as an example of this task; None where it is none."""

    def render(self, backbone: Backbone, example: Example, limits: Limits) -> Rendered:
        """What the model reads, and what it is to predict, as token ids."""

    def head(self, backbone: Backbone) -> Head:
        """Hidden states of the targets' positions (..., width) -> logits in fp32 (..., classes)."""

    def predict(
        self, backbone: Backbone, prefixes: Sequence[Prefix], rows: Sequence[Row], rule: DecodingRule
    ) -> list[Prediction]:
        """One a row."""

    def score(
        self, references: Sequence[str], predictions: Sequence[Prediction], *, use_stemmer: bool
    ) -> list[Mapping[str, float]]:
        """Every metric of each example.

        Raises:
            QuorumError: a scorer's parts are at odds.
        """


def load_task(module: str) -> Task:
    """The task that a module defines."""
    task: Task = importlib.import_module(module).TASK
    return task
