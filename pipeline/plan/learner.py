"""A learner: a backbone that is cut somewhere, and the tensors above the cut that train."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.model.frozen_part import Above
from pipeline.model.precision import Precision
from pipeline.workspace.record import Record

AdaptedPositions = Literal["targets", "all"]


class View(Record):
    """How a backbone reads examples: on this depends what the store has of an example.

    Attributes:
        backbone: its name in params.yaml, and in models/backbones.
        frozen: the frozen part of an encoder, as in `e,0-4`; None for a language model.
        layers: the layers that an encoder has, from below; None: all.
        adapted_layers: the layers of a language model, from above, that have adapters; None for an encoder.
        source_tokens: the most tokens that it reads of an example.
        target_tokens: the most tokens of the example's text that it learns to write; 1 for an encoder.
    """

    backbone: str
    frozen: str | None = None
    layers: list[int] | None = None
    adapted_layers: int | None = None
    source_tokens: int
    target_tokens: int = 1


class Reader(Record):
    """A frozen model that reads examples: what encoding needs of a learner.

    Attributes:
        uncached: whether the frozen layers run on every batch, because the store has no entry that fits.
        device, precision, threads: how it is computed.
    """

    view: View
    uncached: bool = False
    device: str
    precision: Precision
    threads: int = Field(ge=1)


class Learner(Reader):
    """A model for a task, but for the seed of its initial tensors.

    Attributes:
        task: the task's module.
        above: what trains above the frozen part: its layers, bottleneck adapters, or LoRA.
        size: m of a bottleneck, r of LoRA; None for layers.
        dropout: the probability that an adapter's input is dropped, in training.
        adapted_positions: whether adapters act on the target's positions, or on the prompt's too.
    """

    task: str
    above: Above
    size: int | None
    dropout: float = 0.0
    adapted_positions: AdaptedPositions = "targets"

    @property
    def reader(self) -> Reader:
        """The same without what trains."""
        return Reader(**{name: getattr(self, name) for name in Reader.model_fields})


def name_of(view: View) -> str:
    """What messages call a view: `minilm-l6 e,0-4`."""
    layers = "" if view.layers is None else f" of {'-'.join(map(str, view.layers))}"
    return f"{view.backbone}{layers} {view.frozen or f'with {view.adapted_layers} adapted layers'}"
