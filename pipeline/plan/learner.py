"""A learner, which is a backbone that is cut somewhere with tensors above the cut, and its training."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from pipeline.federated.faults import Faults
from pipeline.federated.knobs import ClientOptimizer, Schedule
from pipeline.federated.tolerance import Tolerance
from pipeline.model.frozen_part import Above
from pipeline.model.precision import Precision
from pipeline.workspace.record import Json, Record

AdaptedPositions = Literal["targets", "all"]
OPTIONAL: Any = Field(default=None, exclude_if=lambda value: value is None)
"""A key that an order leaves out where it is None."""
EMPTY: Any = Field(default_factory=dict, exclude_if=lambda value: not value)


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


class CommonKnobs(Record):
    """The knobs of every training, of any algorithm, by their names in params.yaml; a run can set its own values.

    Attributes:
        rounds: at most so many rounds.
        patience: a training ends when no client's validation loss has fallen for so many rounds.
        local_epochs: passes over a client's examples in a round.
        batch_size: examples in a step.
        clients_per_round: clients that take part in a round, drawn anew each round; None: all.
        client_optimizer: of the clients: AdamW, or SGD without momentum.
        client_schedule: of the learning rate within a round.
        weight_decay: of AdamW, on all tensors but norms and biases.
        clip_norm: the largest norm of a gradient.
        faults: what goes wrong in a simulation.
        tolerance: what the server does about it.
    """

    rounds: int = Field(ge=1)
    patience: int = Field(default=3, ge=1)
    local_epochs: int = Field(default=1, ge=1)
    batch_size: int = Field(default=16, ge=1)
    clients_per_round: int | None = Field(default=None, ge=1)
    client_optimizer: ClientOptimizer = "adamw"
    client_schedule: Schedule = "constant"
    weight_decay: float = Field(default=0.01, ge=0)
    clip_norm: float = Field(default=1.0, gt=0)
    faults: Faults | None = OPTIONAL
    tolerance: Tolerance | None = OPTIONAL


class Training(CommonKnobs):
    """One training. Runs that differ only in name, or in which of its models is evaluated, share it.

    Attributes:
        joins: late client -> its first round.
        weights: client -> the weight of one of its examples in an average, where that is not 1.
        keep_rounds: whether every round's models are saved.
        code, packages: of the modules and packages behind it; a run's row has none.
    """

    learning_rate: float = Field(gt=0)
    algorithm: str
    hyperparameters: Json
    seed: int
    joins: dict[str, int] = Field(default_factory=dict)
    weights: dict[str, float] = Field(default_factory=dict)
    keep_rounds: bool = False
    learner: Learner
    code: dict[str, str] = EMPTY
    packages: dict[str, str] = EMPTY


def name_of(view: View) -> str:
    """What messages call a view: `minilm-l6 e,0-4`."""
    layers = "" if view.layers is None else f" of {'-'.join(map(str, view.layers))}"
    return f"{view.backbone}{layers} {view.frozen or f'with {view.adapted_layers} adapted layers'}"
