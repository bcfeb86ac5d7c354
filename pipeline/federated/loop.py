"""Rounds: who trains, who evaluates, what is kept, when to stop. The loop knows no algorithm."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, Kind, Randomness, ServerState, Update
from pipeline.federated.wire import send
from pipeline.model.adapter import Adapter

POOLED = "pooled"


class EvaluatedData(ClientData, Protocol):
    """A client's data with a validation set."""

    def validation_loss(self, adapter: Adapter) -> float:
        """Mean loss a target token of the validation examples, in nats."""


@dataclass(frozen=True)
class Best:
    """A client's best round so far, by its own validation loss; `teacher` is what it was sent in that round."""

    round: int
    loss: float
    adapter: Adapter
    teacher: Adapter


@dataclass(frozen=True)
class Progress:
    """Everything that a next round depends on, and the record of those before."""

    round: int
    server: ServerState
    clients: dict[str, ClientState]
    best: dict[Kind, dict[str, Best]]
    stale: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    distilled: dict[str, list[Tensor]] = field(default_factory=dict)


def start(algorithm: Algorithm, trained: Mapping[str, ClientData], initial: Adapter) -> Progress:
    """Before the first round: everyone holds the same adapter."""
    kinds: tuple[Kind, ...] = ("server", "local") if algorithm.communicates else ("local",)
    return Progress(
        round=0,
        server=algorithm.init(initial, sum(data.examples for data in trained.values())),
        clients={name: ClientState(initial) for name in trained},
        best={kind: {} for kind in kinds},
        distilled={name: [] for name in trained},
    )


@dataclass(frozen=True)
class Schedule:
    """How long a training lasts, and who takes part when.

    Args:
        rounds: at most so many.
        patience: stop when no client's model that the algorithm is judged by improved for so many rounds.
        clients_per_round: so many clients train in a round, drawn anew each time; None: all.
        joins: the round in which a client comes in, where that is not the first; its adapter is the server's then.
    """

    rounds: int
    patience: int
    clients_per_round: int | None = None
    joins: Mapping[str, int] = field(default_factory=dict)

    def present(self, names: Iterable[str], number: int) -> list[str]:
        return [name for name in names if self.joins.get(name, 1) <= number]

    def is_over(self, progress: Progress) -> bool:
        expecting = any(number > progress.round for number in self.joins.values())
        return progress.round >= self.rounds or (progress.stale >= self.patience and not expecting)


def drawn(names: Sequence[str], count: int | None, seed: int, number: int) -> list[str]:
    """Who trains in a round: a function of (seed, round) alone, the same for all methods."""
    if count is None or count >= len(names):
        return list(names)
    order = sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{number}/{name}".encode()).digest())
    chosen = set(order[:count])
    return [name for name in names if name in chosen]


def run_rounds(
    algorithm: Algorithm,
    trained: Mapping[str, ClientData],
    evaluated: Mapping[str, EvaluatedData],
    progress: Progress,
    schedule: Schedule,
    *,
    seed: int,
    on_round: Callable[[Progress], None],
) -> Progress:
    """Train until the schedule is over.

    Args:
        trained: the clients that train; the one client `pooled` for a pooled algorithm.
        evaluated: the clients that are scored, each on its own validation data.
        on_round: called after every finished round, with all that a resumption needs.
    """
    while not schedule.is_over(progress):
        progress = _one_round(algorithm, trained, evaluated, progress, schedule, seed)
        on_round(progress)
    return progress


def _one_round(
    algorithm: Algorithm,
    trained: Mapping[str, ClientData],
    evaluated: Mapping[str, EvaluatedData],
    progress: Progress,
    schedule: Schedule,
    seed: int,
) -> Progress:
    number = progress.round + 1
    clients, updates, traffic = _train(algorithm, trained, progress, schedule, seed)
    server = algorithm.server_update(progress.server, list(updates.values()))
    best: dict[Kind, dict[str, Best]] = {kind: dict(kept) for kind, kept in progress.best.items()}
    history = list(progress.history)
    sent_losses = _server_losses(progress)
    improved = False
    for name in schedule.present(evaluated, number):
        owner = POOLED if algorithm.pooled else name
        candidates: dict[Kind, Adapter] = {"local": clients[owner].adapter, "server": server.adapter}
        losses = {kind: _validation_loss(evaluated[name], candidates[kind], number, name) for kind in best}
        for kind, loss in losses.items():
            if name not in best[kind] or loss < best[kind][name].loss:
                best[kind][name] = Best(number, loss, candidates[kind], teacher=progress.server.adapter)
                # A training that two rows share must not depend on which of its models either row scores.
                improved = improved or kind == algorithm.evaluates
        teacher_loss = None
        if algorithm.communicates:  # what was sent is the last round's server, which has been scored but in round 1
            known = sent_losses.get(name)
            teacher_loss = evaluated[name].validation_loss(progress.server.adapter) if known is None else known
        history.append(_row(number, name, updates.get(owner), traffic.get(owner, (0, 0)), losses, teacher_loss))
    return Progress(
        round=number,
        server=server,
        clients=clients,
        best=best,
        stale=0 if improved else progress.stale + 1,
        history=history,
        distilled={
            name: [*rows, updates[name].trace.distilled] if name in updates else rows
            for name, rows in progress.distilled.items()
        },
    )


def _train(
    algorithm: Algorithm,
    trained: Mapping[str, ClientData],
    progress: Progress,
    schedule: Schedule,
    seed: int,
) -> tuple[dict[str, ClientState], dict[str, Update], dict[str, tuple[int, int]]]:
    """The clients' half of the next round: their states, what the server receives, and bytes (down, up)."""
    number = progress.round + 1
    clients = dict(progress.clients)
    for name in schedule.present(trained, number):
        if schedule.joins.get(name, 1) == number > 1:
            clients[name] = ClientState(progress.server.adapter)
    updates: dict[str, Update] = {}
    traffic: dict[str, tuple[int, int]] = {}
    # All are sent the same: packed once, and what arrives is read, never changed.
    sent = algorithm.shares(progress.server)
    shared, down = send(sent) if algorithm.communicates else (sent, 0)
    for name in drawn(schedule.present(trained, number), schedule.clients_per_round, seed, number):
        rng = Randomness(seed, name, number)
        clients[name], update = algorithm.client_update(shared, clients[name], trained[name], rng)
        updates[name], up = _received(update) if algorithm.communicates else (update, 0)
        traffic[name] = (down, up)
    return clients, updates, traffic


def _server_losses(progress: Progress) -> dict[str, float]:
    """The validation loss of the last round's server, by client; rounds stand in the history in their order."""
    last = itertools.takewhile(lambda row: row["round"] == progress.round, reversed(progress.history))
    return {row["client"]: row["server_validation_loss"] for row in last}


def _received(update: Update) -> tuple[Update, int]:
    """An update as the server receives it, and its bytes."""
    arrived, size = send(update.adapter | update.memory)
    adapter = {name: arrived[name] for name in arrived if name in update.adapter}
    memory = {name: arrived[name] for name in arrived if name not in update.adapter}
    return replace(update, adapter=adapter, memory=memory), size


def _validation_loss(scored: EvaluatedData, adapter: Adapter, number: int, client: str) -> float:
    loss = scored.validation_loss(adapter)
    if not math.isfinite(loss):
        raise QuorumError(
            f"round {number}, client {client}: the validation loss is {loss}; lower learning_rate and run again, which "
            "begins anew"
        )
    return loss


def _row(
    number: int,
    name: str,
    update: Update | None,
    traffic: tuple[int, int],
    losses: Mapping[Kind, float],
    teacher_loss: float | None,
) -> dict[str, Any]:
    """One line of history.csv; what a method or an idle client does not have is None.

    `seconds` is kept apart from cached outputs.
    """
    trace = None if update is None else update.trace
    distils = trace is not None and (bool(trace.distilled.any()) or not math.isnan(trace.teacher_entropy))
    return {
        "round": number,
        "client": name,
        "train_loss": trace.loss if trace else None,
        "local_validation_loss": losses["local"],
        "server_validation_loss": losses.get("server"),
        "teacher_validation_loss": teacher_loss,
        "share_distilled": float(trace.distilled.float().mean()) if trace and distils else None,
        "teacher_entropy": trace.teacher_entropy if trace and distils else None,
        "tau": trace.tau if trace and distils and math.isfinite(trace.tau) else None,
        "steps": trace.steps if trace else 0,
        "bytes_down": traffic[0],
        "bytes_up": traffic[1],
        "seconds": trace.seconds if trace else 0.0,
    }
