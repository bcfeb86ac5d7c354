"""The interface of a task on labelled texts: its texts, how a model reads them, its predictions and their scores.

An encoder's task has classes and trains a head. Its outputs are logits, a row for each item, so that algorithms and
objectives treat it like a language model. A writer's task is for a language model.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import TypeIs

from pipeline.corpora.example import Example
from pipeline.model.decoding_rule import DecodingRule
from pipeline.tasks.task import Metric, Prediction

if TYPE_CHECKING:  # torch takes seconds, which the plan saves
    import torch
    from torch import Tensor

    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Backbone, Limits, Prefix, Rendered, Row
    from pipeline.model.encoder import Encoder


class EncoderTask(Protocol):
    """Functions without state. `Any` is the task's kind of text."""

    @property
    def kind(self) -> type[Any]:
        """The kind of record that the task reads; see `corpora.texts`."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """Metrics of predictions; runs are compared by the first."""

    def classes(self, texts: Sequence[Any]) -> tuple[str, ...]:
        """The classes that occur in training texts, in the order of the logits."""

    def render(self, encoder: Encoder, text: Any, classes: Sequence[str], tokens: int) -> list[Rendered]:
        """A text as one window or, with a long context, several, of at most so many tokens each.

        The loss is that of the first window; its target is empty where the text has none.
        """

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        """The head's tensors, `head.*`."""

    def head_input(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """The part of a text's prefix that the head reads, which is stored where only the head trains."""

    def items(self, prefix: Prefix) -> int:
        """The number of a text's rows in the outputs."""

    def outputs(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """Logits in fp32 (items, classes), the items of all texts concatenated."""

    def predict(
        self,
        encoder: Encoder,
        text: Any,
        windows: Sequence[Rendered],
        logits: Sequence[Tensor],
        classes: Sequence[str],
    ) -> str:
        """The prediction of a text from the logits of its windows, each (items, classes)."""

    def score(self, text: Any, prediction: str) -> Mapping[str, float]:
        """Every metric's parts of one example; see `metrics`."""


class WriterTask(Protocol):
    """A task whose predictions are written texts; see `EncoderTask`."""

    @property
    def kind(self) -> type[Any]: ...

    @property
    def metrics(self) -> Sequence[Metric]: ...

    def example(self, text: Any) -> Example:
        """A text in the form of a prompt."""

    def render(self, backbone: Backbone, example: Example, limits: Limits) -> Rendered: ...

    def predict(
        self, backbone: Backbone, prefixes: Sequence[Prefix], rows: Sequence[Row], rule: DecodingRule
    ) -> list[Prediction]:
        """A prediction for each row."""

    def score_texts(self, texts: Sequence[Any], predictions: Sequence[Prediction]) -> list[Mapping[str, float]]:
        """Every metric of each text."""


TextTask = EncoderTask | WriterTask


def writes(task: TextTask) -> TypeIs[WriterTask]:
    """Whether a language model does the task."""
    return hasattr(task, "example")


@dataclass(frozen=True)
class EncoderWithHead:
    """The outputs of an encoder and a task's head, as training and losses need them; see `token_figures.Hidden`."""

    encoder: Encoder
    task: EncoderTask
    ragged = True
    """Whether outputs may be as wide as the longest text of their batch."""

    @property
    def device(self) -> torch.device:
        """The encoder's."""
        return self.encoder.device

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """The task's outputs, which are logits (items, classes)."""
        return self.task.outputs(self.encoder, prefixes, adapter)

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        """The outputs themselves."""
        del targets
        return hidden

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """Empty texts: a class has none."""
        return [""] * len(tokens)


def to_store(encoder: Encoder, task: EncoderTask, prefix: Prefix) -> Prefix:
    """The part of a text's prefix that is stored: where nothing but the head trains, what the head reads."""
    return prefix if encoder.trained or encoder.stores_tokens else task.head_input(encoder, prefix)


def load_text_task(module: str) -> TextTask:
    """The task on labelled texts that a module defines."""
    task: TextTask = importlib.import_module(module).TASK
    return task
