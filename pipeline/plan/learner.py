"""A learner, which is a backbone that is cut somewhere with tensors above the cut, and its training."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from pipeline.clients.setting import Count
from pipeline.federated.faults import Faults
from pipeline.federated.knobs import ClientOptimizer, Draw, LossOver, Schedule
from pipeline.federated.tolerance import Tolerance
from pipeline.model.frozen_part import Above
from pipeline.model.precision import Precision
from pipeline.workspace.record import Json, Record

AdaptedPositions = Literal["targets", "all"]
OPTIONAL = Field(default=None, exclude_if=lambda value: value is None)
"""A key that an order leaves out where it is None."""
EMPTY: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)


class View(Record):
    """How a backbone reads examples: on this depends what the store has of an example."""

    backbone: str  # its name in params.yaml, and in models/backbones
    frozen: str | None = None  # the frozen part of an encoder, as in `e,0-4`; None for a language model
    layers: list[int] | None = None  # the layers that an encoder has, from below; None: all
    adapted_layers: int | None = None  # of a language model, from above, that have adapters
    source_tokens: int  # the most tokens that it reads of an example
    target_tokens: int = 1  # the most tokens of the example's text that it learns to write; 1 for an encoder


class Reader(Record):
    """A frozen model that reads examples: what encoding needs of a learner."""

    view: View
    uncached: bool = False  # whether the frozen layers run on every batch, because the store has no entry that fits
    device: str  # how it is computed
    precision: Precision
    threads: int = Field(ge=1)


class Learner(Reader):
    """A model for a task, but for the seed of its initial tensors."""

    task: str  # the task's module
    above: Above  # what trains above the frozen part: its layers, bottleneck adapters, or LoRA
    size: int | None  # m of a bottleneck, r of LoRA; None for layers
    dropout: float = 0.0  # the probability that an adapter's input is dropped, in training
    adapted_positions: AdaptedPositions = "targets"  # where adapters act: on the target, or on the prompt too

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
        clients_per_round: clients that take part in a round, drawn anew each round; `all` of them if not given.
        draw: whether clients are drawn alike, or by their numbers of examples.
        client_optimizer: of the clients: AdamW, or SGD without momentum.
        client_schedule: of the learning rate within a round.
        weight_decay: of AdamW, on all tensors but norms and biases; 0.01 is torch's.
        clip_norm: the largest norm of a gradient.
        trunk_rate: the learning rate of all that trains below a head's last layer, over that layer's.
        loss_over: whether a batch's sum of losses is divided by its items or by its examples.
        faults: what goes wrong in a simulation.
        tolerance: what the server does about it.
    """

    rounds: Count
    patience: Count = 3
    local_epochs: Count = 1
    batch_size: Count = 16
    clients_per_round: Annotated[Count | None, BeforeValidator(lambda given: None if given == "all" else given)] = None
    client_optimizer: ClientOptimizer = "adamw"
    client_schedule: Schedule = "constant"
    weight_decay: float = Field(default=0.01, ge=0)
    clip_norm: float = Field(default=1.0, gt=0)
    draw: Draw = Field(default="uniform", exclude_if=lambda value: value == "uniform")
    trunk_rate: float = Field(default=1.0, gt=0, exclude_if=lambda value: value == 1.0)
    loss_over: LossOver = Field(default="items", exclude_if=lambda value: value == "items")
    faults: Faults | None = OPTIONAL
    tolerance: Tolerance | None = OPTIONAL


class Training(CommonKnobs):
    """One training. Runs that differ only in name, or in which of its models is evaluated, share it."""

    learning_rate: float = Field(gt=0)
    algorithm: str
    hyperparameters: Json
    seed: int
    joins: dict[str, int] = Field(default_factory=dict)  # late client -> its first round
    weights: dict[str, float] = Field(default_factory=dict)  # client -> the weight of an example, if not 1
    keep_rounds: bool = False  # whether every round's models are saved
    learner: Learner
    code: dict[str, str] = EMPTY  # of the modules and packages behind it; a run's row has none
    packages: dict[str, str] = EMPTY


def name_of(view: View) -> str:
    """What messages call a view: `minilm-l6 e,0-4`."""
    layers = "" if view.layers is None else f" of {'-'.join(map(str, view.layers))}"
    return f"{view.backbone}{layers} {view.frozen or f'with {view.adapted_layers} adapted layers'}"
