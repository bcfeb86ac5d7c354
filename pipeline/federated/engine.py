"""Who runs a round's clients: in this process, or on machines that are really apart.

The loop says who trains when, and asks for losses; an engine keeps what clients never send: their data, their own
adapters, their best rounds, their masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.federated.algorithm import Sent, Update
from pipeline.model.adapter import Adapter


@dataclass(frozen=True, slots=True)
class Report:
    """What a client tells of a round beside its update: its trace without the masks, and the bytes of both ways."""

    loss: float
    steps: int
    seconds: float
    figures: Mapping[str, float]
    bytes_down: int
    bytes_up: int


@dataclass(frozen=True)
class Arrival:
    """A client's answer: what it sends, and which round it was asked for."""

    name: str
    update: Update
    version: int
    report: Report


@dataclass(frozen=True)
class Losses:
    """Validation losses of a client, in nats an item: of its own model and of the server's, where there is one."""

    local: float | None
    server: float | None


class Engine(Protocol):
    """Runs clients; names are those of the run's clients."""

    @property
    def trainers(self) -> Sequence[str]:
        """The clients that train."""

    @property
    def scored(self) -> Mapping[str, str]:
        """Each client that is scored -> the one whose training makes its own model: most often itself.

        One that names no trainer has none; on its data, which no client holds, the server's model alone is scored.
        """

    def join(self, name: str, adapter: Adapter) -> None:
        """A client comes in late: its own adapter is this one."""

    def submit(self, name: str, sent: Sent, version: int) -> None:
        """Ask a client to train; `version` is the round."""

    def arrivals(self) -> Iterator[Arrival]:
        """What was asked for, as it comes in; ends when nothing is outstanding.

        Raises:
            QuorumError: a client's training failed.
        """

    def loss(self, name: str, adapter: Adapter) -> float:
        """A client's validation loss of an adapter."""

    def score(self, name: str, server: Adapter | None, began: Adapter, version: int) -> Losses:
        """A client's losses after a round; the client keeps its best model of either kind.

        Args:
            server: the server's new adapter; None where nothing travels.
            began: the server's adapter that this round began with.
        """


def train_round(engine: Engine, sent: Sent, names: Sequence[str], version: int) -> Iterator[Arrival]:
    """One synchronous round: all are asked, and their answers come in the order of `names`.

    Only who answers before its turn is held until then.
    """
    for name in names:
        engine.submit(name, sent, version)
    early: dict[str, Arrival] = {}
    turns = iter(names)
    turn = next(turns, None)
    for arrival in engine.arrivals():
        early[arrival.name] = arrival
        while turn in early:
            yield early.pop(turn)
            turn = next(turns, None)
