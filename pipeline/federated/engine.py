"""The interface of an engine, which runs a round's clients: in this process, or on separate machines.

The loop decides who trains when. An engine stores what clients never send: their data, their own adapters, their best
rounds and their masks.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pipeline.federated.algorithm import Sent, Trace, Update
from pipeline.model.adapter import Adapter


@dataclass(frozen=True)
class Assignment:
    """A client's task: what it was sent to train, in which round (`version`), and when (`at`, see `Arrival`)."""

    name: str
    sent: Sent
    version: int
    at: float = 0.0


@dataclass(frozen=True)
class Arrival:
    """A client's answer to an assignment: the update that it sends in a round (`version`), and its trace without masks.

    `at` is in seconds since the training began, on the engine's clock; an engine without a clock repeats the
    assignment's time. `job` is the name of the training that the answer belongs to.
    """

    name: str
    update: Update
    version: int
    trace: Trace
    at: float = 0.0
    job: str = ""


@dataclass(frozen=True)
class Failure:
    """Why an assignment has no usable answer: `what` is the reason, in a few words; the others are as in `Arrival`.

    `final` is whether the assignment has ended. If not, a stray message was rejected, and the answer may still arrive.
    """

    name: str
    version: int
    what: str
    at: float = 0.0
    final: bool = True


@dataclass(frozen=True)
class Losses:
    """Validation losses in nats per item: of the client's model, the server's, and the one the round began with.

    None where there is no such model, or where the loss was not requested.
    """

    local: float | None
    server: float | None
    began: float | None = None


EventKind = Literal["arrived", "missing", "refused", "repeated", "skipped"]


@dataclass(frozen=True)
class Event:
    """A row of events.csv: what happened to a client's update, or to a round (`client` is empty), and why.

    `at` is in seconds since the training began, on the engine's clock.
    """

    round: int
    client: str
    kind: EventKind
    why: str
    at: float = 0.0


EVENT_COLUMNS = ("round", "client", "kind", "why", "at")  # the columns of events.csv


class Engine(Protocol):
    """Runs clients, which it knows by their names in params.yaml."""

    @property
    def trainers(self) -> Mapping[str, int]:
        """The clients that train -> their numbers of examples, as they weigh in averages."""

    @property
    def scored(self) -> Mapping[str, str]:
        """Each client that is scored -> the client that trains its own model, which is usually itself.

        If that is no trainer, there is no such model, and only the server's model is scored on the client's data.
        """

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        """Add a client in round `version`, with `adapter` as its own."""

    def submit(self, assignment: Assignment) -> None:
        """Let a client train."""

    def arrivals(self) -> Iterator[Arrival | Failure]:
        """The answers in the order in which they arrive, at least one per assignment; ends when none is outstanding.

        Raises QuorumError if a client's training failed and cannot be repeated.
        """

    def score(
        self, names: Sequence[str], server: Adapter | None, began: Adapter, version: int, unknown: Collection[str]
    ) -> Mapping[str, Losses]:
        """Client -> its losses after round `version`, of those that answer. Each saves its best model of either kind.

        Args:
            names: the clients to score.
            server: the server's new adapter; None if the algorithm does not communicate.
            began: the server's adapter at the start of the round.
            unknown: the clients that also compute the loss of `began`.
        """
