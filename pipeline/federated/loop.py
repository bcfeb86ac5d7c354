"""Rounds: who trains when, what is written down, when it is over. The loop knows no algorithm and no engine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.federated.algorithm import Algorithm, Context, Owner, ServerState, Update
from pipeline.federated.callbacks import Callback
from pipeline.federated.engine import Engine, Losses, Report
from pipeline.federated.events import Event
from pipeline.federated.gathering import Gathering, TooFewError, stopped
from pipeline.federated.history import CLOCK, Round
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import STRICT, Tolerance
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
    rules: Tolerance = STRICT,
    job: str = "",
) -> Progress:
    """Train until a callback says that it is over; each is told of every finished round, in its order.

    Args:
        rules: what is done where answers are missing or bad.
        job: the training's name; an answer of another one is refused.

    Raises:
        QuorumError: too few clients answer, and the rules allow no round without them.
    """
    for asked in progress.asked:
        engine.submit(asked.name, asked.sent, asked.version, asked.at)
    while not any(callback.is_over(progress) for callback in callbacks):
        progress = _one_round(algorithm, engine, progress, participation, seed, rules, job)
        for callback in callbacks:
            callback.after_round(progress)
    return progress


def _one_round(
    algorithm: Algorithm,
    engine: Engine,
    progress: Progress,
    participation: Participation,
    seed: int,
    rules: Tolerance,
    job: str,
) -> Progress:
    number = progress.round + 1
    began = progress.server.adapter
    for name in participation.joining(engine.trainers, number):
        engine.join(name, began, number)
    asked = {one.name: one for one in progress.asked}
    sent = algorithm.shares(progress.server)
    answers = Gathering(engine, number, sent, algorithm.travels, rules, job, asked, progress.clock)
    updates = _updates(algorithm, answers, participation.present(engine.trainers, number), participation, seed)
    server = _renewed(algorithm, progress.server, updates, answers, Context(seed, number))
    # Who is still training for a buffer would be waited for.
    present = [
        name for name in participation.present(engine.scored, number) if engine.scored[name] not in answers.asked
    ]
    known = {row.client: row.server_validation_loss for row in progress.last}
    # What was sent is the last round's server, which has been scored where a client was asked for that.
    unknown = [name for name in present if algorithm.communicates and known.get(name) is None]
    losses = engine.score(present, server.adapter if algorithm.communicates else None, began, number, unknown)
    rows = []
    for name in (name for name in present if name in losses):
        trainer = engine.scored[name]
        report = answers.reports.get(trainer) if trainer in engine.trainers else _of_all(answers.reports.values())
        sent_loss = losses[name].began if name in unknown else known.get(name)
        rows.append(_row(seed, number, name, report, losses[name], sent_loss, answers.clock))
    return replace(
        _after(progress, number, server, rows, algorithm),
        events=(*progress.events, *answers.events),
        asked=tuple(answers.asked.values()),
        clock=answers.clock,
    )


def _updates(
    algorithm: Algorithm, answers: Gathering, present: Sequence[str], participation: Participation, seed: int
) -> Iterator[Update]:
    """Of all whom this round draws; or of the first to answer, where the algorithm has a buffer."""
    if algorithm.buffer is None:
        return answers.in_order(drawn(present, participation.clients_per_round, seed, answers.round))

    def draw(busy: set[str]) -> Sequence[str]:
        idle = [name for name in present if name not in busy]
        free = (participation.clients_per_round or len(present)) - len(answers.asked)
        return drawn(idle, free, seed, answers.round)

    return answers.as_they_come(algorithm.buffer, draw)


def _renewed(
    algorithm: Algorithm, server: ServerState, updates: Iterator[Update], answers: Gathering, context: Context
) -> ServerState:
    """The server's next state, made while updates come in; the same one where the round has no quorum."""
    try:
        renewed = algorithm.server_update(server, updates, context)
        for _ in updates:
            pass  # clients train, too, where the server wants nothing of them
    except TooFewError as short:
        if answers.rules.without_quorum == "stop":
            raise stopped(context.round, short) from None
        answers.events.append(Event(context.round, "", "skipped", str(short), answers.clock))
        return server
    return renewed


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


def _row(
    seed: int,
    number: int,
    name: str,
    report: Report | None,
    losses: Losses,
    sent_loss: float | None,
    clock: float,
) -> Round:
    """What one client's round is remembered by; what an idle client does not have is None."""
    simulated = {CLOCK: clock} if clock else {}
    round_ = Round(
        seed=seed,
        round=number,
        client=name,
        local_validation_loss=losses.local,
        server_validation_loss=losses.server,
        sent_validation_loss=sent_loss,
        figures=simulated,
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
        figures={**report.figures, **simulated},
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
