"""Windows of texts and the readers that compute their entries: with the model, they determine an entry's bits.

A deeper cut of an encoder starts from the entries that the store has of a lower cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from pipeline.model.backbone import Backbone, Limits, Prefix, Rendered
from pipeline.model.encoder import Encoder, Lower
from pipeline.model.frozen_part import FrozenPart
from pipeline.plan.view import View
from pipeline.tasks.encoded import to_store
from pipeline.tasks.task import AnyTask, EncoderTask

Windows = Mapping[str, Sequence[Rendered]]
"""Text -> its windows of tokens."""


def windows_of(text: Any, task: AnyTask, model: Any, view: View, classes: Sequence[str]) -> list[Rendered]:
    """Tokenize a text for a model: usually one window, several for a long paragraph."""
    return task.render(model, text, classes, Limits(view.tokens, view.target_tokens or 1))


def from_below(views: Mapping[str, View]) -> list[str]:
    """Return the views' names, the lowest cut first."""
    return sorted(views, key=lambda name: FrozenPart.parse(views[name].frozen).layers)


def uncut(view: View) -> View:
    """Return the view without its cut, equal for all cuts of one model."""
    return view.model_copy(update={"frozen": "none"})


def lower_of(
    view: View, windows: Windows, keys: Mapping[str, Sequence[str]], states: Callable[[str], Tensor]
) -> Lower | None:
    """Return the states from which a deeper cut starts; None if only embeddings are below.

    Args:
        keys: text -> its windows' entries.
        states: reads an entry's hidden states (T, n).
    """
    layers = FrozenPart.parse(view.frozen).layers
    known = {one.source: key for text, own in windows.items() for one, key in zip(own, keys[text], strict=True)}

    def hidden(one: Rendered) -> Tensor | None:
        key = known.get(one.source)
        return None if key is None else states(key)

    return Lower(layers, hidden) if layers else None


class Reader(Protocol):
    """Computes entries."""

    @property
    def layers(self) -> list[Any]:
        """Which of the model's layers are frozen, a part of the store's keys."""

    def __call__(self, windows: Sequence[Rendered]) -> Iterator[Prefix]:
        """Yield one prefix for each window, in order."""


@dataclass(frozen=True)
class EncoderReader:
    """Reads with an encoder for a task; `lower`: states that are not computed again."""

    encoder: Encoder
    task: EncoderTask
    lower: Lower | None

    @property
    def layers(self) -> list[Any]:
        """The cut, and the number of trained layers."""
        return [str(self.encoder.frozen), len(self.encoder.trained)]

    def __call__(self, windows: Sequence[Rendered]) -> Iterator[Prefix]:
        for prefix in self.encoder.encode(windows, self.lower):
            yield to_store(self.encoder, self.task, prefix)


@dataclass(frozen=True)
class WriterReader:
    """Reads with a language model, one text after the other."""

    backbone: Backbone

    @property
    def layers(self) -> list[Any]:
        """The adapted layers."""
        return list(self.backbone.adapted_layers)

    def __call__(self, windows: Sequence[Rendered]) -> Iterator[Prefix]:
        for one in windows:
            yield self.backbone.encode(one, for_generation=False)[0]
