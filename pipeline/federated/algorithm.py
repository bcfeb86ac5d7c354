"""The interface of a federated algorithm: four pure functions over adapters, and a few properties.

    init(initial adapter, examples of all clients) -> ServerState
    shares(server state) -> Sent
    client_update(sent, client state, data, randomness) -> (ClientState, Update, Trace)
    server_update(server state, updates, context) -> ServerState

`updates` is an iterator. It yields each client's update once, when the client has answered, so that a server that
averages needs memory for one update only. `init` and `shares` have defaults: the server has an adapter and sends it.
An algorithm reads no files, logs nothing, and does not know the number of clients.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from pipeline.federated.figures import Bounds, Declared, Figures
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import Objective
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

Owner = Literal["local", "server"]  # which model is meant: the client's own, or the server's
ClientSends = Literal["adapter", "change", "nothing"]
"""What a client sends: its trained adapter, the change from the adapter that it received, or nothing."""
Memory = dict[str, Tensor]
"""Further tensors that an algorithm stores or sends in addition to an adapter, by names that it chooses."""
Pull = Callable[[Adapter], Adapter]
"""Current adapter -> a term to add to the gradient of each of its tensors."""


class Knobs(BaseModel):
    """The base of every algorithm's `Hyperparameters`. The fields' names are keys of params.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False, strict=True)


@dataclass(frozen=True)
class Sent:
    """What the server sends to a client: its adapter, and the tensors in `memory` that the algorithm adds."""

    adapter: Adapter
    memory: Memory = field(default_factory=dict)


class Form(NamedTuple):
    """What a tensor of an update's memory must be: its shape, and the bounds of all its numbers."""

    shape: Sequence[int]
    bounds: Bounds = Bounds()


@dataclass(frozen=True)
class Update:
    """What a client sends to the server.

    Attributes:
        adapter: its trained adapter, or the change of it (see `ClientSends`).
        examples: the number of examples it trained on, its weight in averages.
        steps: the number of optimizer steps it took.
        memory: further tensors of the algorithm.
        version: the round whose model it trained. The server fills it in; it is not transmitted.
    """

    adapter: Adapter
    examples: int
    steps: int
    memory: Memory = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """Measurements of one client's training in one round.

    Attributes:
        loss: the mean training loss, in the objective's units (nats per token).
        figures: means over all training items, by name; see `Algorithm.declared`.
        masks: boolean (local epochs, items), by name, in the order of the client's examples. They never leave the
            client: the engine stores them, and passes the trace on without them.
        bytes_down: received from the server, like `bytes_up`, sent to it. The engine fills both in.
    """

    loss: float
    steps: int
    seconds: float
    figures: Figures = field(default_factory=dict)
    masks: Mapping[str, Tensor] = field(default_factory=dict)
    bytes_down: int = 0
    bytes_up: int = 0


def combined(traces: Collection[Trace]) -> Trace:
    """Traces of at least one step as one: means over optimizer steps, and sums of steps, seconds and bytes."""
    steps = sum(trace.steps for trace in traces)
    names = next(iter(traces)).figures
    return Trace(
        sum(trace.steps * trace.loss for trace in traces) / steps,
        steps,
        sum(trace.seconds for trace in traces),
        {name: sum(trace.steps * trace.figures[name] for trace in traces) / steps for name in names},
        bytes_down=sum(trace.bytes_down for trace in traces),
        bytes_up=sum(trace.bytes_up for trace in traces),
    )


class Fit(NamedTuple):
    """A finished local training: the adapter, its trace, and the optimizer's moments if they were requested."""

    adapter: Adapter
    trace: Trace
    moments: Adapter


@dataclass(frozen=True)
class ServerState:
    """What the server stores between rounds: its adapter, and further tensors of the algorithm.

    `figures` are of the round that ended in this state. They go to the history and to MLflow, and are not stored.
    """

    adapter: Adapter
    memory: Memory = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)


@dataclass(frozen=True)
class ClientState:
    """What a client stores between rounds: its own adapter, and further tensors of the algorithm."""

    adapter: Adapter
    memory: Memory = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """What `server_update` knows in addition to the server's state and the updates: the seed and the round."""

    seed: int
    round: int


class ClientData(Protocol):
    """A client's examples, as an algorithm sees them."""

    @property
    def examples(self) -> int:
        """The number of training examples, which is the client's weight in averages."""

    @property
    def learning_rate(self) -> float:
        """Of the optimizer's steps."""

    def fit(
        self,
        start: Adapter,
        rng: Randomness,
        objective: Objective = CROSS_ENTROPY,
        *,
        pull: Pull | None = None,
        moments: Adapter | None = None,
        epochs: Sequence[int] | None = None,
    ) -> Fit:
        """Train a copy of `start` for the local epochs.

        Args:
            start: the adapter to begin with.
            rng: names the random numbers of this client and round.
            objective: the loss to minimize.
            pull: a further term of the gradient, as a function of the current adapter.
            moments: AdamW's moments of an earlier round, empty in the first. None starts a new optimizer and returns
                no moments.
            epochs: the numbers of the local epochs to train, from 0, which name their orders of examples; None: all.
        """

    def gradient(self, adapter: Adapter) -> Adapter:
        """The gradient of the mean cross-entropy of all training items."""

    # For algorithms with `states`:

    @property
    def epochs(self) -> int:
        """The local epochs of a round."""

    def states(self, adapter: Adapter) -> tuple[Tensor, Tensor, Tensor]:
        """All training items: states before the head (items, width), logits (items, classes), targets (items,)."""

    def step(self, adapter: Adapter, gradient: Tensor) -> Adapter:
        """The adapter after one step of the optimizer along a gradient in the states of all items (items, width)."""


ClientResult = tuple[ClientState, Update, Trace]
"""What a client stores, what it sends, and measurements of its training."""
ClientUpdate = Callable[[Sent, ClientState, ClientData, Randomness], ClientResult]
"""The client's part of a round."""
ServerUpdate = Callable[[ServerState, Iterable[Update], Context], ServerState]
"""The server's part of a round. Updates can be read once, in the order of the clients in params.yaml."""


@dataclass(frozen=True)
class Algorithm:
    """An algorithm with its hyperparameters filled in.

    Attributes:
        evaluates: the model that the method's row of a table is about.
        init: (initial adapter, examples of all clients) -> the server's first state.
        shares: the server's state -> what it sends to its clients; a list has one for each client of the round.
        sends: what a client sends.
        holds: what was sent -> the tensors of an update's memory; by default any of those that were sent.
        rounds_a_draw: for how many rounds the same clients take part.
        pooled: whether one model is trained on the data of all clients.
        passes: how often a client trains in a round.
        stateful: whether a client needs its state of earlier rounds. If not, the state is dropped after a round,
            unless the client's own model is scored.
        buffer: the number of updates that complete a round, also of models of earlier rounds; None: a round waits
            for all clients that it selected.
        needs: the fewest updates of a round that it can aggregate.
        states: whether it reads items' states before the head, which not every task has.
        marks_words: whether the objective reads the words of the references, which not every task has.
        objective: what clients minimize. It declares the figures that their losses have.
        figures: the figures that the algorithm itself adds to a client's trace.

    docs/methods.md runs a round of two clients by hand.
    """

    client_update: ClientUpdate
    server_update: ServerUpdate
    evaluates: Owner
    init: Callable[[Adapter, int], ServerState] = lambda initial, _examples: ServerState(initial)
    shares: Callable[[ServerState], Sent | Sequence[Sent]] = lambda server: Sent(server.adapter)
    sends: ClientSends = "adapter"
    holds: Callable[[Sent], Mapping[str, Form]] | None = None
    rounds_a_draw: int = 1
    pooled: bool = False
    passes: int = 1
    stateful: bool = True
    buffer: int | None = None
    needs: int = 1
    states: bool = False
    marks_words: bool = False
    objective: Objective = CROSS_ENTROPY
    figures: Declared = field(default_factory=dict)

    def draw_of(self, number: int) -> int:
        """The number of the draw whose clients take part in round `number`; see `rounds_a_draw`."""
        return -(-number // self.rounds_a_draw)

    @property
    def declared(self) -> Declared:
        """The figures that may leave a client, declared by the objective or by the algorithm."""
        return {**self.objective.figures, **self.figures}

    @property
    def communicates(self) -> bool:
        return self.sends != "nothing"


class WeightedMean:
    """Σ n_i w_i / Σ n_i (Feng et al., Eq. 2), accumulated one adapter at a time in float64 and rounded once.

    The mean of one adapter is that adapter, bit for bit. `weight` is Σ n_i so far.
    """

    def __init__(self, weighted: Iterable[tuple[Adapter, float]] = ()) -> None:
        self.weight = 0.0
        self._sums: dict[str, Tensor] = {}
        self._types: dict[str, torch.dtype] = {}
        for adapter, weight in weighted:
            self.add(adapter, weight)

    def add(self, adapter: Adapter, weight: float) -> None:
        self.weight += weight
        for name, tensor in adapter.items():
            if name in self._sums:  # In place, to write a large model once instead of four times.
                self._sums[name].add_(tensor, alpha=weight)
            else:
                self._sums[name] = tensor.double() * weight
            self._types[name] = tensor.dtype

    def value(self) -> Adapter:
        """The mean, in the adapters' own types. Raises ValueError if nothing was added."""
        if not self.weight:
            raise ValueError("a mean of no updates; note that updates can be read only once")
        return {name: (summed / self.weight).to(self._types[name]) for name, summed in self._sums.items()}
