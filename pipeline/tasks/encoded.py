"""What a task on labelled texts is: which texts, how a model reads them, what it predicts, and how that is scored.

An encoder's has classes and a head of its own. Its outputs are logits already, an item a row, so that algorithms and
objectives treat it like a language model's head. A writer's is done by a language model.
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
    """Plain functions; a task holds no state. `Any` is its own kind of text."""

    @property
    def kind(self) -> type[Any]:
        """The record that it reads; see `corpora.texts`."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """Of predictions, the one by which runs are compared first."""

    def classes(self, texts: Sequence[Any]) -> tuple[str, ...]:
        """What can be predicted, in the order of the logits, of training texts."""

    def render(self, encoder: Encoder, text: Any, classes: Sequence[str], tokens: int) -> list[Rendered]:
        """What the encoder reads of a text, in at most so many tokens each: one or, of a long context, several windows.

        The first is the one that a loss is taken on; its targets are empty where none can be.
        """

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        """The head's tensors, `head.*`."""

    def kept(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """What is stored of a text above which nothing but the head trains: what the head reads, and no more."""

    def items(self, prefix: Prefix) -> int:
        """How many rows of the outputs are a text's."""

    def outputs(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """Logits in fp32 (items, classes), the items of the texts one after the other."""

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
    """A task whose answers are written; see `EncoderTask`."""

    @property
    def kind(self) -> type[Any]: ...

    @property
    def metrics(self) -> Sequence[Metric]: ...

    def example(self, text: Any) -> Example:
        """A text as a prompt shows it."""

    def render(self, backbone: Backbone, example: Example, limits: Limits) -> Rendered: ...

    def predict(
        self, backbone: Backbone, prefixes: Sequence[Prefix], rows: Sequence[Row], rule: DecodingRule
    ) -> list[Prediction]:
        """One a row."""

    def score_texts(self, texts: Sequence[Any], predictions: Sequence[Prediction]) -> list[Mapping[str, float]]:
        """Every metric of each text."""


TextTask = EncoderTask | WriterTask


def writes(task: TextTask) -> TypeIs[WriterTask]:
    return hasattr(task, "example")


@dataclass(frozen=True)
class Under:
    """An encoder under a task's head: what training and losses need; see `token_figures.Hidden`."""

    encoder: Encoder
    task: EncoderTask
    ragged = True
    """Its outputs may be as wide as the longest text of their batch."""

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        return self.task.outputs(self.encoder, prefixes, adapter)

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        """The outputs are logits already."""
        del targets
        return hidden

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """A class is no text."""
        return [""] * len(tokens)


def stored(encoder: Encoder, task: EncoderTask, prefix: Prefix) -> Prefix:
    """What is kept of a text: no more than its task's head reads, where nothing else trains."""
    whole = encoder.trained or encoder.stores_tokens
    return prefix if whole else task.kept(encoder, prefix)


def load_text_task(module: str) -> TextTask:
    """The task on labelled texts that a module defines."""
    task: TextTask = importlib.import_module(module).TASK
    return task
