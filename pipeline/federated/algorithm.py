"""What a federated algorithm is: four pure functions over adapters, and a few facts about it.

    init(initial adapter, examples of all clients) -> ServerState
    shares(server_state) -> what is sent
    client_update(sent, client_state, data, rng) -> (ClientState, Update)
    server_update(server_state, updates) -> ServerState

The first two have defaults: the server holds an adapter and sends it. No algorithm reads a file, logs, or knows how
many clients there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict
from torch import Tensor

from pipeline.federated.objectives.distillation import Distillation
from pipeline.model.adapter import Adapter

Kind = Literal["local", "server"]

Pull = Callable[[Adapter], Adapter]
"""The adapter in training -> what is added to the gradient of each of its tensors."""


class Knobs(BaseModel):
    """The base of an algorithm's `Hyperparameters`, whose names are those of params.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


@dataclass(frozen=True)
class Randomness:
    """What batch order is a function of, besides the epoch: never of the method, nor of who took part."""

    seed: int
    client: str
    round: int


@dataclass(frozen=True)
class Trace:
    """What one client's training in one round looked like; it stays with whoever runs the loop.

    `distilled` is boolean (local epochs, all target tokens of the client's training examples in their own order);
    `teacher_entropy`, in nats, and the loss are means over all tokens trained on; entropy is NaN without a teacher, and
    so is `tau`, the threshold in nats that was used.
    """

    loss: float
    teacher_entropy: float
    distilled: Tensor
    steps: int
    seconds: float
    tau: float = math.nan


class Fit(NamedTuple):
    """A finished local training: the adapter, its trace, and the optimizer's moments where they are kept."""

    adapter: Adapter
    trace: Trace
    moments: Adapter


@dataclass(frozen=True)
class Update:
    """What a client sends: its adapter, how many examples and optimizer steps are behind it, and whatever else its
    algorithm needs (`memory`, under names that no adapter has); the rest of the trace stays with whoever runs the loop.
    """

    adapter: Adapter
    examples: int
    trace: Trace
    memory: dict[str, Tensor] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return self.trace.steps


TOTAL = "examples_of_all"
"""Where a server's memory keeps how many examples stand behind its adapter."""


@dataclass(frozen=True)
class ServerState:
    """The server's adapter, and whatever else an algorithm carries from round to round."""

    adapter: Adapter
    memory: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class ClientState:
    """A client's own adapter, and whatever else an algorithm carries from round to round."""

    adapter: Adapter
    memory: dict[str, Tensor] = field(default_factory=dict)


class ClientData(Protocol):
    """A client's examples, to an algorithm."""

    @property
    def examples(self) -> int:
        """How many training examples it has."""

    def fit(
        self,
        start: Adapter,
        rng: Randomness,
        teacher: Adapter | None = None,
        how: Distillation | None = None,
        *,
        pull: Pull | None = None,
        moments: Adapter | None = None,
    ) -> Fit:
        """Train a copy of `start` for the local epochs, by cross-entropy or by distillation from `teacher`.

        Args:
            pull: what a term of the algorithm's own adds to the gradient, as a function of the adapter.
            moments: the optimizer's, kept from an earlier round (empty in the first); None begins afresh.
        """

    def gradient(self, adapter: Adapter) -> Adapter:
        """The gradient of the mean cross-entropy of all training tokens."""


ClientUpdate = Callable[[Adapter, ClientState, ClientData, Randomness], tuple[ClientState, Update]]
"""The client's half of a round: what the server sent, the client's state and data, randomness -> state, update."""

ServerUpdate = Callable[[ServerState, Sequence[Update]], ServerState]
"""The server's half: its state, the clients' updates -> its next state."""


def adapter_alone(state: ServerState) -> Adapter:
    return state.adapter


def begin_with(initial: Adapter, _examples: int) -> ServerState:
    return ServerState(initial)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm with its hyperparameters bound.

    `evaluates` names the model that its row of a table is about; `communicates` is false where nothing travels;
    `pooled` trains one model on the data of all clients. `init` is told how many examples all clients have
    together, and `shares` is what the server sends them: its adapter, and what else an algorithm needs under names of
    its own. `passes`: how often a client trains in a round. `marks` tells, from the pieces of a summary, which of its
    tokens are marked; None where no token is.
    """

    client_update: ClientUpdate
    server_update: ServerUpdate
    evaluates: Kind
    init: Callable[[Adapter, int], ServerState] = begin_with
    shares: Callable[[ServerState], Adapter] = adapter_alone
    communicates: bool = True
    pooled: bool = False
    passes: int = 1
    marks: Callable[[Sequence[str]], Sequence[bool]] | None = None


def weighted_average(adapters: Sequence[Adapter], weights: Sequence[float]) -> Adapter:
    """Σ p_i w_i with p_i = weight_i / Σ weights (Eq. 2): summed in float64, rounded once.

    One adapter alone comes back bit for bit.
    """
    total = float(sum(weights))
    shares = [weight / total for weight in weights]
    average = {}
    for name, first in adapters[0].items():
        summed = first.double() * shares[0]
        for adapter, share in zip(adapters[1:], shares[1:], strict=True):
            summed += adapter[name].double() * share
        average[name] = summed.to(first.dtype)
    return average
