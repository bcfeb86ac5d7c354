"""What a federated algorithm is: four pure functions over adapters, and a few facts about it.

    init(initial adapter, examples of all clients) -> ServerState
    shares(server state) -> Sent
    client_update(sent, client state, data, randomness) -> (ClientState, Update, Trace)
    server_update(server state, updates, context) -> ServerState

Updates are an iterator: each is there once, when its client has answered, and need not be held after that. `init` and
`shares` have defaults: the server holds an adapter and sends it. No algorithm reads a file, logs, or knows how many
clients there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import Objective
from pipeline.federated.randomness import Randomness, generator
from pipeline.model.adapter import Adapter

Owner = Literal["local", "server"]
"""Whose model is meant: the client's own, or the server's."""

Travels = Literal["adapter", "change", "nothing"]
"""What a client sends: its adapter, what its training changed of the one it was sent, or nothing."""

Memory = dict[str, Tensor]
"""Whatever an algorithm carries or sends besides an adapter, by names of its own."""

Pull = Callable[[Adapter], Adapter]
"""The adapter in training -> what is added to the gradient of each of its tensors."""


class Knobs(BaseModel):
    """The base of an algorithm's `Hyperparameters`, whose names are those of params.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


@dataclass(frozen=True)
class Sent:
    """What travels from the server to a client."""

    adapter: Adapter
    memory: Memory = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """What travels from a client to the server: its adapter, its algorithm's memory, and how much training made them.

    `examples` were trained on, in `steps` optimizer steps. Beside it the loop is told losses and figures, never masks.
    `version` is the round that the client was asked in: it does not travel, the server notes it.
    """

    adapter: Adapter
    examples: int
    steps: int
    memory: Memory = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """What a client's training looked like in one round; its masks stay with whoever runs the client.

    `loss` and `figures` are means over all items trained on, in the objective's units (nats a token). `masks` are
    boolean (local epochs, items of the client's training examples in their own order).
    """

    loss: float
    steps: int
    seconds: float
    figures: Mapping[str, float] = field(default_factory=dict)
    masks: Mapping[str, Tensor] = field(default_factory=dict)


class Fit(NamedTuple):
    """A finished local training: the adapter, its trace, and the optimizer's moments where they are kept."""

    adapter: Adapter
    trace: Trace
    moments: Adapter


@dataclass(frozen=True)
class ServerState:
    """The server's adapter, and whatever else an algorithm carries from round to round."""

    adapter: Adapter
    memory: Memory = field(default_factory=dict)


@dataclass(frozen=True)
class ClientState:
    """A client's own adapter, and whatever else an algorithm carries from round to round."""

    adapter: Adapter
    memory: Memory = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """What a server's half of a round knows besides its state and the updates."""

    seed: int
    round: int

    def generator(self) -> torch.Generator:
        """The server's own randomness: a function of (seed, round) alone."""
        return generator(f"{self.seed}/server/{self.round}")


class ClientData(Protocol):
    """A client's examples, to an algorithm."""

    @property
    def examples(self) -> int:
        """How many training examples it has, by which averages weigh it."""

    def fit(
        self,
        start: Adapter,
        rng: Randomness,
        objective: Objective = CROSS_ENTROPY,
        *,
        pull: Pull | None = None,
        moments: Adapter | None = None,
    ) -> Fit:
        """Train a copy of `start` for the local epochs.

        Args:
            objective: what the training makes small.
            pull: what a term of the algorithm's own adds to the gradient, as a function of the adapter.
            moments: the optimizer's, kept from an earlier round (empty in the first); None begins afresh.
        """

    def gradient(self, adapter: Adapter) -> Adapter:
        """The gradient of the mean cross-entropy of all training items."""


ClientUpdate = Callable[[Sent, ClientState, ClientData, Randomness], tuple[ClientState, Update, Trace]]
"""The client's half of a round."""

ServerUpdate = Callable[[ServerState, Iterable[Update], Context], ServerState]
"""The server's half of a round; updates come once, in the order of the clients' names in the run."""


def adapter_alone(state: ServerState) -> Sent:
    return Sent(state.adapter)


def begin_with(initial: Adapter, _examples: int) -> ServerState:
    return ServerState(initial)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm with its hyperparameters bound.

    Two clients share one weight, w = 0. The first, with one example, is best off at 4, the second, with three, at 8;
    local training goes halfway. Federated averaging, one round, by hand: (1 · 2 + 3 · 4) / 4 = 3.5.

    >>> class Toy:
    ...     def __init__(self, best, examples):
    ...         self.best, self.examples = best, examples
    ...     def fit(self, start, rng, objective=None, *, pull=None, moments=None):
    ...         return Fit({"w": (start["w"] + self.best) / 2}, Trace(loss=0.0, steps=1, seconds=0.0), {})
    >>> def client_update(sent, state, data, rng):
    ...     fit = data.fit(sent.adapter, rng)
    ...     return ClientState(fit.adapter), Update(fit.adapter, data.examples, fit.trace.steps), fit.trace
    >>> def server_update(state, updates, context):
    ...     return ServerState(weighted_average((update.adapter, update.examples) for update in updates))
    >>> toy = Algorithm(client_update, server_update, evaluates="server")
    >>> server = toy.init({"w": torch.tensor(0.0)}, 4)
    >>> clients = {"A": Toy(4.0, 1), "B": Toy(8.0, 3)}
    >>> halves = [
    ...     toy.client_update(toy.shares(server), ClientState(server.adapter), data, Randomness(1, name, 1))
    ...     for name, data in clients.items()
    ... ]
    >>> toy.server_update(server, [update for _, update, _ in halves], Context(seed=1, round=1)).adapter
    {'w': tensor(3.5000)}

    `evaluates` names the model that its row of a table is about; `travels` says what clients send; `pooled` trains one
    model on the data of all clients. `init` is told how many examples all clients have together, and `shares` is what
    the server sends them. `passes`: how often a client trains in a round. `keeps`: whether a client needs its state of
    the round before; one that does not is forgotten, unless its own model is scored. `buffer`: the server goes on after
    so many answers, whichever round they were asked in; None: it waits for all that the round asked. `marks_words`: it
    reads the words of references, so that a task has to write some.
    """

    client_update: ClientUpdate
    server_update: ServerUpdate
    evaluates: Owner
    init: Callable[[Adapter, int], ServerState] = begin_with
    shares: Callable[[ServerState], Sent] = adapter_alone
    travels: Travels = "adapter"
    pooled: bool = False
    passes: int = 1
    keeps: bool = True
    buffer: int | None = None
    marks_words: bool = False

    @property
    def communicates(self) -> bool:
        return self.travels != "nothing"


class Mean:
    """Σ n_i w_i / Σ n_i (Eq. 2), one adapter after the other: summed in float64, rounded once.

    One adapter alone comes back bit for bit. `weight` is Σ n_i so far.
    """

    def __init__(self) -> None:
        self.weight = 0.0
        self._sums: dict[str, Tensor] = {}
        self._types: dict[str, torch.dtype] = {}

    def add(self, adapter: Adapter, weight: float) -> None:
        self.weight += weight
        for name, tensor in adapter.items():
            # In place, since a model of many numbers would be written four times else.
            if name in self._sums:
                self._sums[name].add_(tensor, alpha=weight)
            else:
                self._sums[name] = tensor.double() * weight
            self._types[name] = tensor.dtype

    def value(self) -> Adapter:
        """
        Raises:
            ValueError: nothing has been added.
        """
        if not self.weight:
            raise ValueError("a mean of nothing: updates can be read once")
        return {name: (summed / self.weight).to(self._types[name]) for name, summed in self._sums.items()}


def weighted_average(weighted: Iterable[tuple[Adapter, float]]) -> Adapter:
    """The mean of (w_i, n_i)."""
    mean = Mean()
    for adapter, weight in weighted:
        mean.add(adapter, weight)
    return mean.value()
