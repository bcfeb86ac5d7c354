"""The loop over rounds: who trains, what is recorded, and when training ends. It knows no algorithm and no engine."""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.errors import QuorumError
from pipeline.federated.aggregate import aggregate
from pipeline.federated.algorithm import Algorithm, Context, Owner, ServerState, Trace, combined
from pipeline.federated.callbacks import Callback
from pipeline.federated.collector import TooFewUpdatesError, UpdateCollector
from pipeline.federated.engine import Engine, Event
from pipeline.federated.figures import Figures
from pipeline.federated.history import CLOCK, Round
from pipeline.federated.knobs import Draw
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import STRICT, Tolerance
from pipeline.model.adapter import Adapter


@dataclass(frozen=True)
class Participation:
    """Which clients take part in which rounds.

    Attributes:
        clients_per_round: the number of clients that are selected for each round; None: all.
        joins: client -> the round in which it joins, with the server's adapter as its own; the first if not given.
        draw: how they are selected.
    """

    clients_per_round: int | None = None
    joins: Mapping[str, int] = field(default_factory=dict)
    draw: Draw = "uniform"

    def select(
        self, names: Sequence[str], count: int | None, seed: int, number: int, examples: Mapping[str, int]
    ) -> list[str]:
        """Select `count` clients in draw `number`; `examples`: client -> how many it has."""
        return select_clients(names, count, seed, number, examples if self.draw == "by_examples" else None)

    def present(self, names: Iterable[str], number: int) -> list[str]:
        """The clients that have joined by round `number`."""
        return [name for name in names if self.joins.get(name, 1) <= number]

    def joining(self, names: Iterable[str], number: int) -> list[str]:
        """The clients that join in round `number`, if that is not the first."""
        return [name for name in names if self.joins.get(name, 1) == number > 1]


def select_clients(
    names: Sequence[str], count: int | None, seed: int, number: int, examples: Mapping[str, int] | None = None
) -> list[str]:
    """Select `count` clients for a round; the choice depends on (seed, round) alone, not on the method.

    Args:
        examples: client -> the weight by which clients are drawn without replacement, by the least −ln u / n
            (Efraimidis and Spirakis, 2006); None: all alike.
    """
    if count is None or count >= len(names):
        return list(names)
    digests = {name: hashlib.sha256(f"{seed}/{number}/{name}".encode()).digest() for name in names}
    if examples is None:
        order = sorted(names, key=lambda name: digests[name])
    else:
        uniform = {name: (int.from_bytes(digest[:6], "big") + 0.5) / 2**48 for name, digest in digests.items()}
        order = sorted(names, key=lambda name: -math.log(uniform[name]) / examples[name])
    chosen = set(order[:count])
    return [name for name in names if name in chosen]


def initial_progress(algorithm: Algorithm, initial: Adapter, engine: Engine) -> Progress:
    """The progress before the first round: all clients of the engine begin with `initial`."""
    return Progress(round=0, server=algorithm.init(initial, sum(engine.trainers.values())))


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
    """Train until a callback ends the training. Callbacks are called in the given order; see `Callback`.

    Args:
        progress: where to begin: `initial_progress`, or a checkpoint.
        seed: determines the selection of clients.
        job: the training's name; updates of another training are refused.

    Raises QuorumError if a round has too few good updates, and the rules do not allow to skip it.
    """
    for callback in callbacks:
        callback.begin(progress)
    for one in progress.pending:
        engine.submit(one)
    while not any(callback.is_over(progress) for callback in callbacks):
        number, pending = progress.round + 1, {one.name: one for one in progress.pending}
        for name in participation.joining(engine.trainers, number):
            engine.join(name, progress.server.adapter, number)
        sent = algorithm.shares(progress.server)
        answers = UpdateCollector(engine, algorithm, rules, job, number, sent, pending, progress.clock)
        progress = _one_round(answers, progress, participation, seed)
        for callback in callbacks:
            progress = progress.with_figures(callback.figures(progress))
        for callback in callbacks:
            callback.after_round(progress)
    for callback in callbacks:
        callback.end(progress)
    return progress


def _one_round(answers: UpdateCollector, progress: Progress, participation: Participation, seed: int) -> Progress:
    """Train and score the clients of a round; the progress after it, without figures of callbacks."""
    algorithm, engine, number = answers.algorithm, answers.engine, answers.round
    server, figures = _renewed(answers, progress.server, participation, seed)
    present = [  # Clients that still train for a buffer are not scored: the round would have to wait for them.
        name for name in participation.present(engine.scored, number) if engine.scored[name] not in answers.pending
    ]
    known = {row.client: row.server_validation_loss for row in progress.last}
    # What was sent is the last round's server, whose loss the client's last row has if it was scored then.
    unknown = [name for name in present if algorithm.communicates and known.get(name) is None]
    losses = engine.score(
        present, server.adapter if algorithm.communicates else None, progress.server.adapter, number, unknown
    )
    rows, traces = [], answers.traces
    for name, own in ((name, losses[name]) for name in present if name in losses):
        trainer = engine.scored[name]
        trace = traces.get(trainer)
        if trainer not in engine.trainers and any(one.steps for one in traces.values()):
            trace = combined(traces.values())
        sent = own.began if name in unknown else known.get(name)
        row = Round(seed, number, name, figures={CLOCK: answers.clock} if answers.clock else {})
        row = replace(
            row, local_validation_loss=own.local, server_validation_loss=own.server, sent_validation_loss=sent
        )
        rows.append(row if trace is None else _with_training(row, trace))
    least, stale = _improved(progress, rows, algorithm)
    after = Progress(
        number,
        server,
        least,
        stale,
        history=(*progress.history, *rows),
        events=(*progress.events, *answers.events),
        pending=tuple(answers.pending.values()),
        clock=answers.clock,
    )
    return after.with_figures(figures)


def _renewed(
    answers: UpdateCollector, server: ServerState, participation: Participation, seed: int
) -> tuple[ServerState, Figures]:
    """The server's next state and its figures, computed while updates arrive; the same state if there are too few.

    The updates are of all clients selected for the round; with a buffer, of the first clients to answer.
    """
    algorithm, number = answers.algorithm, answers.round
    present = participation.present(answers.engine.trainers, number)

    def select(busy: Collection[str]) -> list[str]:
        free = (participation.clients_per_round or len(present)) - len(answers.pending)
        names = [name for name in present if name not in busy]
        return participation.select(names, free, seed, algorithm.draw_of(number), answers.engine.trainers)

    buffer = algorithm.buffer
    updates = answers.in_order(select(())) if buffer is None else answers.as_they_arrive(buffer, select)
    try:
        return aggregate(algorithm, server, updates, Context(seed, number))
    except TooFewUpdatesError as short:
        if answers.rules.without_quorum == "stop":
            lower = "lower learning_rate, " if "changes the model by" in str(short) else ""
            raise QuorumError(
                f"round {number}: {short}; {lower}run again, or let tolerance in params.yaml repeat or skip such rounds"
            ) from None
        answers.events.append(Event(number, "", "skipped", str(short), answers.clock))
        return server, {}


def _with_training(row: Round, trace: Trace) -> Round:
    """A client's row with the trace of its training."""
    counts = {name: getattr(trace, name) for name in ("steps", "seconds", "bytes_down", "bytes_up")}
    return replace(row, train_loss=trace.loss, figures={**trace.figures, **row.figures}, **counts)


def _improved(progress: Progress, rows: Sequence[Round], algorithm: Algorithm) -> tuple[dict[str, float], int]:
    """The least losses after a round, and the number of rounds since one of them last fell.

    They are of the models that a table may show: the client's own, and the server's if the algorithm is evaluated by
    it. One training of AdaFedAvg gives two rows of a table, and ends when neither improves.
    """
    owners: Sequence[Owner] = ("local", "server") if algorithm.evaluates == "server" else ("local",)
    found = {f"{row.client}/{owner}": row.known_loss(owner) for row in rows for owner in owners}
    better = {
        name: loss for name, loss in found.items() if loss is not None and loss < progress.least.get(name, math.inf)
    }
    return {**progress.least, **better}, 0 if better else progress.stale + 1
