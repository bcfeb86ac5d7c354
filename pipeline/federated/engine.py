"""Who runs a round's clients: in this process, or on machines that are really apart.

The loop says who trains when, and asks for losses; an engine keeps what clients never send: their data, their own
adapters, their best rounds, their masks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
class Asked:
    """That a client was sent something to train from, in which round, and when."""

    name: str
    sent: Sent
    version: int
    at: float = 0.0


@dataclass(frozen=True)
class Arrival:
    """A client's answer: what it sends, which round it was asked for, and of which training.

    `at`: seconds since the training began, by the engine's clock; one that keeps none says when the client was asked.
    """

    name: str
    update: Update
    version: int
    report: Report
    at: float = 0.0
    job: str = ""


@dataclass(frozen=True)
class Failure:
    """What the engine knows of a client that was asked and has no answer; `at` as of an arrival.

    `final`: nothing will come of that asking any more. What is not final was turned away beside it.
    """

    name: str
    version: int
    what: str
    at: float = 0.0
    final: bool = True


@dataclass(frozen=True)
class Losses:
    """Validation losses of a client, in nats an item: of its own model, the server's, and what the round began with.

    None where there is no such model, or it was not asked for.
    """

    local: float | None
    server: float | None
    began: float | None = None


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

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        """A client comes in late, in this round: its own adapter is this one."""

    def submit(self, name: str, sent: Sent, version: int, at: float = 0.0) -> None:
        """Ask a client to train; see `Asked`."""

    def arrivals(self) -> Iterator[Arrival | Failure]:
        """What was asked for, as it comes in, one item a client asked or more; ends when nothing is outstanding.

        Raises:
            QuorumError: a client's training failed for good.
        """

    def score(
        self, names: Sequence[str], server: Adapter | None, began: Adapter, version: int, unknown: Collection[str]
    ) -> Mapping[str, Losses]:
        """Clients' losses after a round; each keeps its best model of either kind. Who does not answer is left out.

        Args:
            server: the server's new adapter; None where nothing travels.
            began: the server's adapter that this round began with.
            unknown: the clients of which `began`'s loss is asked for, too.
        """
