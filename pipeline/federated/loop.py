"""Rounds: who trains, who evaluates, what is kept, when to stop. The loop knows no algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
        server=algorithm.init(initial),
        clients={name: ClientState(initial) for name in trained},
        best={kind: {} for kind in kinds},
        distilled={name: [] for name in trained},
    )


def run_rounds(
    algorithm: Algorithm,
    trained: Mapping[str, ClientData],
    evaluated: Mapping[str, EvaluatedData],
    progress: Progress,
    *,
    rounds: int,
    patience: int,
    seed: int,
    on_round: Callable[[Progress], None],
) -> Progress:
    """Train until `rounds`, or until no client's model that the algorithm is judged by improved for `patience` rounds.

    Args:
        trained: the clients that train; the one client `pooled` for a pooled algorithm.
        evaluated: the clients that are scored, each on its own validation data.
        on_round: called after every finished round, with all that a resumption needs.
    """
    while progress.round < rounds and progress.stale < patience:
        progress = _one_round(algorithm, trained, evaluated, progress, seed)
        on_round(progress)
    return progress


def _one_round(
    algorithm: Algorithm,
    trained: Mapping[str, ClientData],
    evaluated: Mapping[str, EvaluatedData],
    progress: Progress,
    seed: int,
) -> Progress:
    number = progress.round + 1
    clients: dict[str, ClientState] = {}
    updates: dict[str, Update] = {}
    traffic: dict[str, tuple[int, int]] = {}
    for name, data in trained.items():
        shared, down = send(progress.server.adapter) if algorithm.communicates else (progress.server.adapter, 0)
        clients[name], update = algorithm.client_update(
            shared, progress.clients[name], data, Randomness(seed, name, number)
        )
        arrived, up = send(update.adapter) if algorithm.communicates else (update.adapter, 0)
        updates[name] = replace(update, adapter=arrived)
        traffic[name] = (down, up)
    server = algorithm.server_update(progress.server, list(updates.values()))

    best: dict[Kind, dict[str, Best]] = {kind: dict(kept) for kind, kept in progress.best.items()}
    history = list(progress.history)
    improved = False
    for name, scored in evaluated.items():
        owner = POOLED if algorithm.pooled else name
        candidates: dict[Kind, Adapter] = {"local": clients[owner].adapter, "server": server.adapter}
        losses = {kind: _validation_loss(scored, candidates[kind], number, name) for kind in best}
        for kind, loss in losses.items():
            if name not in best[kind] or loss < best[kind][name].loss:
                best[kind][name] = Best(number, loss, candidates[kind], teacher=progress.server.adapter)
                # A training that two rows share must not depend on which of its models either row scores.
                improved = improved or kind == algorithm.evaluates
        teacher_loss = _teacher_loss(progress, scored, name, algorithm)
        history.append(_row(number, name, updates[owner], traffic[owner], losses, teacher_loss))
    return Progress(
        round=number,
        server=server,
        clients=clients,
        best=best,
        stale=0 if improved else progress.stale + 1,
        history=history,
        distilled={name: [*progress.distilled[name], updates[name].trace.distilled] for name in trained},
    )


def _validation_loss(scored: EvaluatedData, adapter: Adapter, number: int, client: str) -> float:
    loss = scored.validation_loss(adapter)
    if not math.isfinite(loss):
        raise QuorumError(
            f"round {number}, client {client}: the validation loss is {loss}; the last good round is kept: lower "
            "learning_rate and run again"
        )
    return loss


def _teacher_loss(progress: Progress, scored: EvaluatedData, name: str, algorithm: Algorithm) -> float | None:
    """The validation loss of what the client was sent: the last round's server, already scored but in round 1."""
    if not algorithm.communicates:
        return None
    for row in progress.history:
        if row["client"] == name and row["round"] == progress.round:
            loss: float = row["server_validation_loss"]
            return loss
    return scored.validation_loss(progress.server.adapter)


def _row(
    number: int,
    name: str,
    update: Update,
    traffic: tuple[int, int],
    losses: Mapping[Kind, float],
    teacher_loss: float | None,
) -> dict[str, Any]:
    """One line of history.csv; what a method does not have is None. `seconds` is kept apart from cached outputs."""
    trace = update.trace
    distils = bool(trace.distilled.any()) or trace.teacher_entropy == trace.teacher_entropy
    return {
        "round": number,
        "client": name,
        "train_loss": trace.loss,
        "local_validation_loss": losses["local"],
        "server_validation_loss": losses.get("server"),
        "teacher_validation_loss": teacher_loss,
        "share_distilled": float(trace.distilled.float().mean()) if distils else None,
        "teacher_entropy": trace.teacher_entropy if distils else None,
        "steps": trace.steps,
        "bytes_down": traffic[0],
        "bytes_up": traffic[1],
        "seconds": trace.seconds,
    }
