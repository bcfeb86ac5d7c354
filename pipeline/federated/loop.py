"""Rounds: who trains when, what is written down, when it is over. The loop knows no algorithm and no engine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.federated.algorithm import Algorithm, Context, Owner, ServerState, Update
from pipeline.federated.callbacks import Callback
from pipeline.federated.engine import Engine, Losses, Report, train_round
from pipeline.federated.history import Round
from pipeline.federated.state import Progress
from pipeline.model.adapter import Adapter


@dataclass(frozen=True)
class Participation:
    """Who takes part when.

    Args:
        clients_per_round: so many clients train in a round, drawn anew each time; None: all.
        joins: the round in which a client comes in, where that is not the first; its adapter is the server's then.
    """

    clients_per_round: int | None = None
    joins: Mapping[str, int] = field(default_factory=dict)

    def present(self, names: Iterable[str], number: int) -> list[str]:
        return [name for name in names if self.joins.get(name, 1) <= number]

    def joining(self, names: Iterable[str], number: int) -> list[str]:
        return [name for name in names if self.joins.get(name, 1) == number > 1]


def drawn(names: Sequence[str], count: int | None, seed: int, number: int) -> list[str]:
    """Who trains in a round: a function of (seed, round) alone, the same for all methods."""
    if count is None or count >= len(names):
        return list(names)
    order = sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{number}/{name}".encode()).digest())
    chosen = set(order[:count])
    return [name for name in names if name in chosen]


def start(algorithm: Algorithm, initial: Adapter, examples: int) -> Progress:
    """Before the first round.

    Args:
        initial: the adapter that everyone begins with.
        examples: those of all clients together.
    """
    return Progress(round=0, server=algorithm.init(initial, examples))


def run_rounds(
    algorithm: Algorithm,
    engine: Engine,
    progress: Progress,
    participation: Participation,
    callbacks: Sequence[Callback],
    *,
    seed: int,
) -> Progress:
    """Train until a callback says that it is over; each is told of every finished round, in its order."""
    while not any(callback.is_over(progress) for callback in callbacks):
        progress = _one_round(algorithm, engine, progress, participation, seed)
        for callback in callbacks:
            callback.after_round(progress)
    return progress


def _one_round(
    algorithm: Algorithm, engine: Engine, progress: Progress, participation: Participation, seed: int
) -> Progress:
    number = progress.round + 1
    began = progress.server.adapter
    for name in participation.joining(engine.trainers, number):
        engine.join(name, began)
    names = drawn(participation.present(engine.trainers, number), participation.clients_per_round, seed, number)
    server, reports = _trained(algorithm, engine, progress.server, names, Context(seed, number))
    known = {row.client: row.server_validation_loss for row in progress.last}
    rows = []
    for name in participation.present(engine.scored, number):
        losses = engine.score(name, server.adapter if algorithm.communicates else None, began, number)
        # What was sent is the last round's server, which has been scored but in a client's first round.
        sent_loss = known.get(name)
        if algorithm.communicates and sent_loss is None:
            sent_loss = engine.loss(name, began)
        trainer = engine.scored[name]
        report = reports.get(trainer) if trainer in engine.trainers else _of_all(reports.values())
        rows.append(_row(seed, number, name, report, losses, sent_loss))
    return _after(progress, number, server, rows, algorithm)


def _trained(
    algorithm: Algorithm, engine: Engine, server: ServerState, names: Sequence[str], context: Context
) -> tuple[ServerState, dict[str, Report]]:
    """The server's next state, made while updates come in, and what those clients tell beside them."""
    reports: dict[str, Report] = {}

    def updates() -> Iterator[Update]:
        for arrival in train_round(engine, algorithm.shares(server), names, context.round):
            reports[arrival.name] = arrival.report
            yield arrival.update

    coming = updates()
    renewed = algorithm.server_update(server, coming, context)
    for _ in coming:
        pass  # clients train, too, where the server wants nothing of them
    return renewed, reports


def _of_all(reports: Collection[Report]) -> Report | None:
    """What all clients of a round tell, as one: means over optimizer steps, and sums."""
    steps = sum(report.steps for report in reports)
    if not steps:
        return None

    def mean(of: Callable[[Report], float]) -> float:
        return sum(report.steps * of(report) for report in reports) / steps

    figures = {name: mean(lambda one, name=name: one.figures[name]) for name in next(iter(reports)).figures}  # type: ignore[misc]
    return Report(
        mean(lambda one: one.loss),
        steps,
        sum(report.seconds for report in reports),
        figures,
        sum(report.bytes_down for report in reports),
        sum(report.bytes_up for report in reports),
    )


def _row(seed: int, number: int, name: str, report: Report | None, losses: Losses, sent_loss: float | None) -> Round:
    """What one client's round is remembered by; what an idle client does not have is None."""
    round_ = Round(
        seed=seed,
        round=number,
        client=name,
        local_validation_loss=losses.local,
        server_validation_loss=losses.server,
        sent_validation_loss=sent_loss,
    )
    if report is None:
        return round_
    return replace(
        round_,
        train_loss=report.loss,
        steps=report.steps,
        seconds=report.seconds,
        bytes_down=report.bytes_down,
        bytes_up=report.bytes_up,
        figures=dict(report.figures),
    )


def _after(
    progress: Progress, number: int, server: ServerState, rows: Sequence[Round], algorithm: Algorithm
) -> Progress:
    """The next progress; a round is stale if no client's model that a table may be about has improved in it.

    That is the client's own; and the server's, where the algorithm is judged by it: a training of AdaFedAvg serves two
    rows, and ends when neither gets better.
    """
    owners: Sequence[Owner] = ("local", "server") if algorithm.evaluates == "server" else ("local",)
    found = {f"{row.client}/{owner}": row.known_loss(owner) for row in rows for owner in owners}
    now = {name: loss for name, loss in found.items() if loss is not None}
    better = {name: loss for name, loss in now.items() if loss < progress.least.get(name, math.inf)}
    stale = 0 if better else progress.stale + 1
    return Progress(number, server, {**progress.least, **better}, stale, (*progress.history, *rows))
