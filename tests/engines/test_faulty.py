"""Clients that fail as a plan says: chances, the clock, and the same bits each time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from federations import begin, same
from halfway import Halfway, engine, number, one

from pipeline.engines.faulty import Faulty
from pipeline.engines.in_process import InProcess
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientState, Sent
from pipeline.federated.algorithms import fedavg, fedbuff
from pipeline.federated.callbacks.checkpointing import Checkpointing
from pipeline.federated.callbacks.stopping import Stopping
from pipeline.federated.checkpoint import load_progress
from pipeline.federated.engine import Arrival, Failure
from pipeline.federated.faults import Faults, Poison
from pipeline.federated.history import CLOCK
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Private, Progress
from pipeline.federated.tolerance import Tolerance

FEDAVG = fedavg.build(fedavg.Hyperparameters())
MANY = {f"client-{place:02d}": 4.0 + place for place in range(8)}
EVERYTHING = Faults(
    dropout=0.1, dropout_during=0.1, lost=0.1, truncated=0.1, duplicated=0.1, stragglers=0.2, slowdown=50.0,
    poisoned={"client-03": "nan", "client-04": "foreign", "client-05": "shape"},
)  # fmt: skip
RULES = Tolerance(minimum=2, repeats=3, deadline=600.0)


def buffered(size: int) -> Algorithm:
    return fedbuff.build(fedbuff.Hyperparameters(buffer=size))


def faulty(faults: Faults, deadline: float | None = 600.0, **best: float) -> Faulty:
    return Faulty(engine(FEDAVG, **(best or MANY)), faults, deadline, seed=1)


def answers(made: Faulty, names: list[str], version: int = 1) -> list[Arrival | Failure]:
    for name in names:
        made.submit(name, Sent(one(0.0)), version)
    return list(made.arrivals())


def trained(
    algorithm: Algorithm, faults: Faults, rounds: int, *, folder: Path | None = None, drawn: int = 20
) -> Progress:
    """Some of eight clients a round; goes on from a checkpoint in the folder."""
    done = load_progress(folder, "key") if folder else None
    clients = {name: Halfway(value) for name, value in MANY.items()}
    private = done[1] if done else begin({name: ClientState(one(0.0)) for name in clients}, folder)
    inner = InProcess(algorithm, clients, clients, private, seed=1, job="key")
    made = Faulty(inner, faults, RULES.deadline, seed=1, sends=algorithm.sends)
    saving = [Checkpointing("key", private)] if folder else []
    begun = done[0] if done else initial_progress(algorithm, one(0.0), 8)
    who = Participation(clients_per_round=drawn)
    return run_rounds(algorithm, made, begun, who, [Stopping(rounds, 99), *saving], seed=1, rules=RULES, job="key")


def test_without_faults_all_answer_in_the_order_of_their_pace() -> None:
    found = answers(faulty(Faults(spread=0.5)), list(MANY))
    assert {one_.name for one_ in found} == set(MANY)
    times = [one_.at for one_ in found]
    assert times == sorted(times)
    assert len(set(times)) == 8


def test_without_spread_all_take_the_same_time() -> None:
    assert {one_.at for one_ in answers(faulty(Faults(spread=0.0, seconds=30.0)), list(MANY))} == {30.0}


def test_a_straggler_takes_as_many_times_as_long() -> None:
    found = answers(faulty(Faults(spread=0.0, seconds=30.0, stragglers=0.5, slowdown=4.0)), list(MANY))
    assert {one_.at for one_ in found} == {30.0, 120.0}


def test_a_straggler_is_too_late_after_the_deadline() -> None:
    found = answers(faulty(Faults(spread=0.0, seconds=30.0, stragglers=0.5), deadline=60.0), list(MANY))
    late = [one_ for one_ in found if isinstance(one_, Failure)]
    assert {(one_.what, one_.at) for one_ in late} == {("is too late", 60.0)}
    assert 0 < len(late) < 8


@pytest.mark.parametrize(
    ("knob", "what", "trains"),
    [
        ("dropout", "never begins", False),
        ("dropout_during", "stops while training", False),
        ("lost", "its answer is lost", True),
        ("truncated", "is not whole", True),
    ],
)
def test_a_chance_is_kept_and_what_it_costs_is_known(knob: str, what: str, trains: bool) -> None:
    """A half of 8 clients in 50 rounds: 200 of 400, give or take 10 (one standard deviation)."""
    made = faulty(Faults.model_validate({knob: 0.5}))
    inner = made._engine
    assert isinstance(inner, InProcess)
    count = 0
    for version in range(1, 51):
        for found in answers(made, list(MANY), version):
            count += isinstance(found, Failure)
            assert isinstance(found, Arrival) or found.what == what
    assert 160 < count < 240
    name = next(
        f.name for f in answers(faulty(Faults.model_validate({knob: 0.5})), list(MANY)) if isinstance(f, Failure)
    )
    alone = faulty(Faults.model_validate({knob: 0.5}))
    assert isinstance(alone._engine, InProcess)
    answers(alone, [name])
    assert (number(alone._engine.private.states[name].adapter) != 0.0) is trains


def test_what_is_duplicated_comes_twice() -> None:
    found = answers(faulty(Faults(duplicated=0.5)), list(MANY))
    assert set(Counter(one_.name for one_ in found).values()) == {1, 2}


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("nan", "has a number in w that is not finite"),
        ("inf", "has a number in w that is not finite"),
        ("huge", "changes the model by 1e+30, over 10000"),
        ("shape", "has w as float32 2, not float32 1"),
        ("names", "lacks tensor w"),
        ("foreign", "is of another training"),
    ],
)
def test_poison_that_can_be_seen_is_refused(kind: Poison, why: str) -> None:
    progress = trained(FEDAVG, Faults(poisoned={"client-03": kind}), 3, drawn=8)
    assert {(event.client, event.kind, event.why) for event in progress.events} == {("client-03", "refused", why)}
    assert len(progress.events) == 3


@pytest.mark.parametrize("algorithm", [FEDAVG, buffered(1)], ids=["adapters", "changes"])
def test_a_reversed_update_goes_the_other_way(algorithm: Algorithm) -> None:
    """A, drawn to 4, goes from 0 to 2; reversed, three times as far: to −6. The server takes it for what it is."""
    inner = engine(algorithm, A=4.0)
    made = Faulty(inner, Faults(poisoned={"A": "reversed"}, strength=3.0), None, seed=1, sends=algorithm.sends)
    begun = initial_progress(algorithm, one(0.0), 1)
    progress = run_rounds(algorithm, made, begun, Participation(), [Stopping(1, 1)], seed=1)
    assert number(progress.server.adapter) == -6.0


@pytest.mark.parametrize("algorithm", [FEDAVG, buffered(3)], ids=["rounds", "a buffer"])
def test_the_same_faults_give_the_same_bits(algorithm: Algorithm) -> None:
    first, second = trained(algorithm, EVERYTHING, 6), trained(algorithm, EVERYTHING, 6)
    assert first.history == second.history
    assert first.events == second.events
    assert same(first.server.adapter, second.server.adapter)


@pytest.mark.parametrize("algorithm", [FEDAVG, buffered(3)], ids=["rounds", "a buffer"])
def test_a_training_with_faults_goes_on_after_a_kill_with_the_same_bits(algorithm: Algorithm, tmp_path: Path) -> None:
    """After every round a new process reads the checkpoint; clients of a buffer are still on their way then."""
    for rounds in range(1, 7):
        resumed = trained(algorithm, EVERYTHING, rounds, folder=tmp_path)
    whole = trained(algorithm, EVERYTHING, 6)
    assert (resumed.history, resumed.events, resumed.clock) == (whole.history, whole.events, whole.clock)
    assert same(resumed.server.adapter, whole.server.adapter)


def test_every_kind_of_fault_is_met_and_named() -> None:
    told = " ".join(event.why for event in trained(FEDAVG, EVERYTHING, 12).events)
    for what in (
        "never begins", "stops while training", "its answer is lost", "is too late", "is not whole", "has come before",
        "not finite", "another training", "float32",
    ):  # fmt: skip
        assert what in told


def test_the_clock_goes_on_by_the_slowest_answer_or_the_deadline() -> None:
    """Rounds of 30 s; a client that never begins is waited for until 600 s."""
    quiet = trained(FEDAVG, Faults(spread=0.0, seconds=30.0), 2)
    assert [row.figures[CLOCK] for row in quiet.history[::8]] == [30.0, 60.0]
    waiting = trained(FEDAVG, Faults(spread=0.0, seconds=30.0, dropout=0.5), 2)
    assert waiting.clock == 1200.0


def test_a_buffer_does_not_wait_for_stragglers() -> None:
    """Half take 1,500 s of a deadline of 600: a round waits for them, a buffer of three goes on without."""
    slow = Faults(spread=0.0, seconds=30.0, stragglers=0.5, slowdown=10.0)
    assert trained(buffered(3), slow, 2).clock < trained(FEDAVG, slow, 2).clock


def test_a_server_that_would_wait_for_ever_is_refused() -> None:
    with pytest.raises(QuorumError, match=r"without tolerance\.deadline a server waits for ever; set it"):
        faulty(Faults(dropout=0.1), deadline=None)


def test_a_poisoned_client_that_is_none_is_named() -> None:
    with pytest.raises(QuorumError, match=r"faults\.poisoned: 'D' is no client of this training"):
        faulty(Faults(poisoned={"D": "nan"}), A=4.0)


def test_private_states_of_those_who_never_began_are_untouched() -> None:
    made = engine(FEDAVG, **MANY)
    assert isinstance(made.private, Private)
    for _ in answers(Faulty(made, Faults(dropout=0.999), 600.0, seed=1), list(MANY)):
        pass
    assert sum(number(made.private.states[name].adapter) != 0.0 for name in MANY) <= 1


def test_time_is_simulated_not_spent() -> None:
    """A round of ten hours."""
    (found,) = answers(faulty(Faults(spread=0.0, seconds=36_000.0), deadline=None), ["client-00"])
    assert found.at == 36_000.0
