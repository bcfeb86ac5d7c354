"""Simulated faults: their probabilities, the clock, equal bits each time, and a buffer that goes on meanwhile."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from federations import FEDAVG, begin, build, same
from halfway import engine, number, one, run

from pipeline.engines.faulty import Faulty
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientState, Sent
from pipeline.federated.callbacks import Checkpointing, Stopping
from pipeline.federated.checkpoint import load_progress
from pipeline.federated.engine import Arrival, Assignment, Failure
from pipeline.federated.faults import Faults, Poison
from pipeline.federated.history import CLOCK
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import Tolerance

MANY = {f"client-{place:02d}": 4.0 + place for place in range(8)}
EVERYTHING = Faults(
    dropout=0.1, dropout_during=0.1, lost=0.1, truncated=0.1, duplicated=0.1, stragglers=0.2, slowdown=50.0,
    poisoned={"client-03": "nan", "client-04": "foreign", "client-05": "shape"},
)  # fmt: skip
RULES = Tolerance(minimum=2, repeats=3, deadline=600.0)
BUFFERED = partial(build, "FedBuff")
STEADY = Faults(spread=0.0, seconds=30.0)
COSTS = [
    ("dropout", "never begins", False),
    ("dropout_during", "stops while training", False),
    ("lost", "its answer is lost", True),
    ("truncated", "is truncated or damaged", True),
]
POISONS = [
    ("nan", "has a number in w that is not finite"),
    ("inf", "has a number in w that is not finite"),
    ("huge", "changes the model by 1e+30, over 10000"),
    ("shape", "has w as float32 2, not float32 1"),
    ("names", "lacks tensor w"),
    ("foreign", "is of another training"),
]


def faulty(faults: Faults, deadline: float | None = 600.0, **optima: float) -> Faulty:
    return Faulty(engine(FEDAVG, **(optima or MANY)), faults, deadline, seed=1)


def answers(made: Faulty, *names: str, version: int = 1) -> list[Arrival | Failure]:
    """The answers of these clients, or of all."""
    for name in names or MANY:
        made.submit(Assignment(name, Sent(one(0.0)), version))
    return list(made.arrivals())


def trained(algorithm: Algorithm, faults: Faults, rounds: int, folder: Path | None = None) -> Progress:
    """All eight clients a round, though more are asked for; continues from a checkpoint in the folder."""
    done = load_progress(folder, "key") if folder else None
    inner = engine(algorithm, **MANY)
    inner.private = done[1] if done else begin(dict.fromkeys(MANY, ClientState(one(0.0))), folder)
    made = Faulty(inner, faults, RULES.deadline, seed=1, sends=algorithm.sends)
    saving = [Checkpointing("key", inner.private)] if folder else []
    begun = done[0] if done else initial_progress(algorithm, one(0.0), made)
    return run_rounds(algorithm, made, begun, Participation(20), [Stopping(rounds, 99), *saving], seed=1, rules=RULES)


def test_clients_answer_in_the_order_of_their_durations() -> None:
    times = [answer.at for answer in answers(faulty(Faults(spread=0.5)))]
    assert times == sorted(set(times))


def test_durations_by_hand() -> None:
    """(When an answer or its absence is noticed, whether it arrives): without stragglers, with them, and too late."""
    slow = STEADY.model_copy(update={"stragglers": 0.5, "slowdown": 4.0})
    found = [answers(faulty(*how)) for how in ((STEADY, 600.0), (slow, 600.0), (slow, 60.0))]
    durations = [{(answer.at, isinstance(answer, Arrival)) for answer in own} for own in found]
    assert durations == [{(30.0, True)}, {(30.0, True), (120.0, True)}, {(30.0, True), (60.0, False)}]


def test_a_round_takes_as_long_as_the_slowest_answer_or_the_deadline_and_a_buffer_waits_for_no_straggler() -> None:
    """Rounds of 30 s; the server waits 600 s for a client that never begins, and 300 s for stragglers."""
    assert [row.figures[CLOCK] for row in trained(FEDAVG, STEADY, 2).history[::8]] == [30.0, 60.0]
    assert trained(FEDAVG, STEADY.model_copy(update={"dropout": 0.5}), 2).clock == 1200.0
    slow = STEADY.model_copy(update={"stragglers": 0.5, "slowdown": 10.0})
    assert trained(BUFFERED(buffer=3), slow, 2).clock < trained(FEDAVG, slow, 2).clock


@pytest.mark.parametrize(("knob", "what", "trains"), COSTS)
def test_a_fault_has_its_probability_and_its_cost(knob: str, what: str, trains: bool) -> None:
    """A half of 8 clients in 50 rounds: 200 of 400, with a standard deviation of 10."""
    faults = Faults.model_validate({knob: 0.5})
    made = faulty(faults)
    found = [answer for version in range(1, 51) for answer in answers(made, version=version)]
    failed = [answer for answer in found if isinstance(answer, Failure)]
    assert {failure.what for failure in failed} == {what}
    assert 160 < len(failed) < 240
    inner, name = engine(FEDAVG, **MANY), failed[0].name
    answers(Faulty(inner, faults, 600.0, seed=1), name, version=failed[0].version)
    assert (number(inner.private.states[name].adapter) != 0.0) is trains


def test_a_duplicated_answer_arrives_twice() -> None:
    found = answers(faulty(Faults(duplicated=0.5)))
    assert set(Counter(answer.name for answer in found).values()) == {1, 2}


@pytest.mark.parametrize(("kind", "why"), POISONS)
def test_poison_that_can_be_recognized_is_refused(kind: Poison, why: str) -> None:
    progress = trained(FEDAVG, Faults(poisoned={"client-03": kind}), 3)
    assert [(event.client, event.kind, event.why) for event in progress.events] == [("client-03", "refused", why)] * 3


@pytest.mark.parametrize("algorithm", [FEDAVG, BUFFERED(buffer=1)], ids=["adapters", "changes"])
def test_a_reversed_update_points_the_other_way(algorithm: Algorithm) -> None:
    """A, with its optimum at 4, goes from 0 to 2; reversed, three times as far, to −6. The server accepts it."""
    faults = Faults(poisoned={"A": "reversed"}, strength=3.0)
    made = Faulty(engine(algorithm, A=4.0), faults, None, seed=1, sends=algorithm.sends)
    assert number(run(algorithm, made).server.adapter) == -6.0


@pytest.mark.parametrize("algorithm", [FEDAVG, BUFFERED(buffer=3)], ids=["rounds", "a buffer"])
def test_a_training_with_faults_resumes_after_each_round_bit_for_bit(algorithm: Algorithm, tmp_path: Path) -> None:
    """After every round a new process reads the checkpoint, while clients of a buffer still train."""
    for rounds in range(1, 7):
        resumed = trained(algorithm, EVERYTHING, rounds, tmp_path)
    through = trained(algorithm, EVERYTHING, 6)
    assert (resumed.history, resumed.events, resumed.clock) == (through.history, through.events, through.clock)
    assert same(resumed.server.adapter, through.server.adapter)


def test_an_unknown_poisoned_client_is_named() -> None:
    with pytest.raises(QuorumError, match=r"faults\.poisoned: 'D' is not a client"):
        faulty(Faults(poisoned={"D": "nan"}), A=4.0)


def filled(size: int, faults: Faults, rounds: int, **optima: float) -> Progress:
    """A training with a buffer of so many updates."""
    made = Faulty(engine(BUFFERED(buffer=size), **optima), faults, 1000.0, seed=1, sends="change")
    return run(BUFFERED(buffer=size), made, rounds, Tolerance(deadline=1000.0, repeats=9))


def test_a_round_ends_with_the_first_update_and_the_others_remain_pending() -> None:
    """A and B take different times, and the buffer is of one: after round 1 the slower one still trains."""
    progress = filled(1, Faults(spread=1.0), 1, A=4.0, B=8.0)
    (pending,) = progress.pending
    answered = {"A": "B", "B": "A"}[pending.name]
    assert (pending.version, number(progress.server.adapter)) == (1, {"A": 2.0, "B": 4.0}[answered])
    assert [row.client for row in progress.history if row.steps] == [answered]


def test_updates_of_earlier_rounds_are_taken() -> None:
    """C is slower than the others; after six rounds all three have trained, C a model of an earlier round."""
    progress = filled(2, Faults(spread=1.0), 6, A=4.0, B=8.0, C=12.0)
    assert {row.client for row in progress.history if row.steps} == {"A", "B", "C"}
    assert {event.kind for event in progress.events} == {"arrived"}


def test_a_client_that_failed_can_be_selected_again() -> None:
    progress = filled(2, Faults(dropout=0.5), 8, A=4.0, B=8.0, C=12.0, D=16.0)
    assert (progress.round, {event.kind for event in progress.events}) == (8, {"arrived", "missing", "repeated"})
    assert len(progress.pending) <= 4


def test_a_buffer_that_never_fills_is_an_error() -> None:
    """Three clients never send four updates of one model."""
    with pytest.raises(QuorumError, match="round 1: 3 updates arrived, and the buffer needs 4"):
        filled(4, Faults(), 1, A=4.0, B=8.0, C=12.0)
