"""FedBuff: staleness by hand, the buffer, and FedAvg as a special case."""

import pytest
from federations import build
from halfway import engine, number, one, run

from pipeline.engines.faulty import Faulty
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Context, ServerState, Update
from pipeline.federated.faults import Faults
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import Tolerance

RULES = Tolerance(deadline=1000.0, repeats=9)
FOUR = {"A": 4.0, "B": 8.0, "C": 12.0, "D": 16.0}


def buffered(size: int, staleness: float = 0.5, rate: float = 1.0) -> Algorithm:
    return build("FedBuff", buffer=size, staleness=staleness, server_learning_rate=rate)


@pytest.mark.parametrize(
    ("staleness", "rate", "examples", "expected"),
    [
        (0.5, 1.0, (1, 1), 10 + (2 + 0.5 * 8) / 2),
        (0.5, 1.0, (3, 1), 10 + (3 * 2 + 1 * 0.5 * 8) / 4),
        (0.0, 1.0, (1, 1), 10 + (2 + 8) / 2),
        (0.0, 0.5, (1, 1), 10 + 0.5 * (2 + 8) / 2),
    ],
)
def test_a_stale_change_counts_less(staleness: float, rate: float, examples: tuple[int, int], expected: float) -> None:
    """From 10 in round 4, a change by 2 of round 4 (s = 1) and one by 8 of round 1 (s = 4^−a)."""
    updates = [Update(one(2.0), examples[0], 1, version=4), Update(one(8.0), examples[1], 1, version=1)]
    after = buffered(2, staleness, rate).server_update(ServerState(one(10.0)), updates, Context(1, 4))
    assert number(after.adapter) == expected


def faulty(size: int, faults: Faults, rounds: int, **optima: float) -> Progress:
    algorithm = buffered(size, staleness=0.0)
    made = Faulty(engine(algorithm, **optima), faults, 1000.0, seed=1, sends="change")
    return run(algorithm, made, rounds, RULES)


def test_a_round_ends_with_the_first_update_and_the_others_remain_pending() -> None:
    """A and B take different times, and the buffer is of one: after round 1 the slower one still trains."""
    progress = faulty(1, Faults(spread=1.0), 1, A=4.0, B=8.0)
    (pending,) = progress.pending
    answered = {"A": "B", "B": "A"}[pending.name]
    assert pending.version == 1
    assert number(progress.server.adapter) == {"A": 2.0, "B": 4.0}[answered]
    assert [row.client for row in progress.history if row.steps] == [answered]


def test_updates_of_earlier_rounds_are_taken() -> None:
    """C is slower than the others; after six rounds all three have trained, C a model of an earlier round."""
    progress = faulty(2, Faults(spread=1.0), 6, A=4.0, B=8.0, C=12.0)
    assert {row.client for row in progress.history if row.steps} == {"A", "B", "C"}
    assert {event.kind for event in progress.events} == {"arrived"}


def test_a_client_that_failed_can_be_selected_again() -> None:
    progress = faulty(2, Faults(dropout=0.5), 8, **FOUR)
    assert progress.round == 8
    assert {event.kind for event in progress.events} == {"arrived", "missing", "repeated"}
    assert len(progress.pending) <= 4


def test_a_buffer_that_never_fills_is_an_error() -> None:
    """Three clients never send four updates of one model."""
    with pytest.raises(QuorumError, match="round 1: 3 updates arrived, and the buffer needs 4"):
        faulty(4, Faults(), 1, A=4.0, B=8.0, C=12.0)
