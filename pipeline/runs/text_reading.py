"""What is read of a text and what is kept of it: all that decides the bits of an entry, but for the model itself.

A cut that is deeper than another of the same encoder goes on from what the store has below.
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
from pipeline.tasks.encoded import EncoderTask, TextTask, to_store, writes

Windows = Mapping[str, Sequence[Rendered]]
"""Text -> what is read of it."""


def windows_of(text: Any, task: TextTask, model: Any, view: View, classes: Sequence[str]) -> list[Rendered]:
    """What a model reads of a text, cut into tokens: as a rule one window, of a long paragraph several."""
    if writes(task):
        return [task.render(model, task.example(text), Limits(view.tokens, view.target_tokens or 1))]
    return task.render(model, text, classes, view.tokens)


def from_below(views: Mapping[str, View]) -> list[str]:
    """Their names, the lowest cut first."""
    return sorted(views, key=lambda name: FrozenPart.parse(views[name].frozen).layers)


def uncut(view: View) -> View:
    """The same model, wherever it is cut."""
    return view.model_copy(update={"frozen": "none"})


def lower_of(
    view: View, windows: Windows, keys: Mapping[str, Sequence[str]], states: Callable[[str], Tensor]
) -> Lower | None:
    """What a deeper cut goes on from; None where nothing but embeddings is below.

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
    """What computes entries; `layers` says which of the model's are frozen."""

    @property
    def layers(self) -> list[Any]: ...

    def __call__(self, windows: Sequence[Rendered]) -> Iterator[Prefix]:
        """One a window, in their order."""


@dataclass(frozen=True)
class EncoderReader:
    """An encoder, for a task; `lower`: what it need not compute again."""

    encoder: Encoder
    task: EncoderTask
    lower: Lower | None

    @property
    def layers(self) -> list[Any]:
        return [str(self.encoder.frozen), len(self.encoder.trained)]

    def __call__(self, windows: Sequence[Rendered]) -> Iterator[Prefix]:
        for prefix in self.encoder.encode(windows, self.lower):
            yield to_store(self.encoder, self.task, prefix)


@dataclass(frozen=True)
class WriterReader:
    """A language model, one text after the other."""

    backbone: Backbone

    @property
    def layers(self) -> list[Any]:
        return list(self.backbone.adapted_layers)

    def __call__(self, windows: Sequence[Rendered]) -> Iterator[Prefix]:
        for one in windows:
            yield self.backbone.encode(one, for_generation=False)[0]
