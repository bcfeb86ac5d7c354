"""The interface of a task: how its examples are rendered, what a model predicts, and how predictions are scored.

A task is one module with a `TASK`, and one line in `pipeline.tasks`. A language model writes the predictions of a
`WriterTask`; those of an `EncoderTask` are classes above an encoder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from typing_extensions import TypeIs, TypeVar

from pipeline.errors import listed
from pipeline.model.decoding_rule import DecodingRule

if TYPE_CHECKING:  # torch takes seconds, which stages that only read or score save
    from torch import Tensor

    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Backbone, Limits, Prefix, Rendered, Row
    from pipeline.model.encoder import Encoder


@dataclass(frozen=True)
class Metric:
    """A figure of an example's prediction or of its reference, and its title in tables.

    Attributes:
        better: which direction is; None where neither is.
        digits: decimals in tables.
        ranked: whether tables mark the best value; they do not for a mere symptom.
        over: the figure of the references that tables show next to its mean.
        per: the figure that counts what an example's value is a sum over, where examples have unequal weights.
        sought: the part of that count which is in the references; where it is 0, there is no score.
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


Scores = list[Mapping[str, float]]  # every metric of each example
LOSS = Metric("loss", "test loss", "nats a token", "less", 3, per="items")
"""The loss of the reference, which every task has."""


E = TypeVar("E", default=Any)  # a task's kind of example


class Task(Protocol[E]):
    """Functions without state."""

    @property
    def kind(self) -> type[E]:
        """The kind of record that the task reads; see `corpora.example`."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """Metrics of predictions; runs are compared by the first."""

    def classes(self, examples: Sequence[E]) -> tuple[str, ...]:
        """The classes that occur in training examples, in the order of the logits; none for a task that writes."""

    def render(self, model: Any, example: E, classes: Sequence[str], limits: Limits) -> list[Rendered]:
        """An example as one window or, with a long context, several: what the model reads, and what it predicts.

        The loss is that of the first window; its target is empty where the example has none.
        """

    def score(
        self, examples: Sequence[E], predictions: Sequence[Prediction], *, use_stemmer: bool, rouge_tokens: str
    ) -> Scores:
        """Score each example's prediction; the knobs are ROUGE's. Raises QuorumError if two libraries disagree."""


class WriterTask(Task[E], Protocol[E]):
    """A task whose predictions are texts, which a language model writes."""

    def predict(
        self, backbone: Backbone, prefixes: Sequence[Prefix], rows: Sequence[Row], rule: DecodingRule
    ) -> list[Prediction]:
        """A prediction for each row."""


class EncoderTask(Task[E], Protocol[E]):
    """A task with classes, whose head trains above an encoder.

    Its outputs are logits, a row for each item, so that algorithms and objectives treat it like a language model.
    """

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        """The head's tensors, `head.*`."""

    def head_input(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """The part of an example's prefix that the head reads, which is stored where only the head trains."""

    def items(self, prefix: Prefix) -> int:
        """The number of an example's rows in the outputs."""

    def outputs(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """Logits in fp32 (items, classes), the items of all examples concatenated."""

    def decide(
        self, encoder: Encoder, example: E, windows: list[Rendered], logits: list[Tensor], classes: Sequence[str]
    ) -> str:
        """The prediction of an example from the logits of its windows, each (items, classes)."""


class UnitsTask(EncoderTask[E], Protocol[E]):
    """A task that chooses units of a text, and whose head shows its states to objectives."""

    def states_and_logits(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """The states before the head's last layer, then its logits: (items, width + classes)."""

    def places(self, predicted: Iterable[tuple[E, str]]) -> list[int]:
        """How many chosen units are at each of the first places of their examples, and last at all others."""


AnyTask = WriterTask | EncoderTask


def writes(task: AnyTask) -> TypeIs[WriterTask]:
    """Whether a language model does the task."""
    return hasattr(task, "predict")


def chooses_units(task: AnyTask) -> TypeIs[UnitsTask]:
    """Whether the task chooses units of a text."""
    return hasattr(task, "states_and_logits")


def load_task(module: str) -> Any:
    """The task that a module defines, of either protocol."""
    return listed(module).TASK
