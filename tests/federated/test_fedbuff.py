"""FedBuff by hand: a buffer, staleness, and what it is where nothing is stale."""

from __future__ import annotations

import pytest
import torch
from federations import FEDAVG, same, three, train
from halfway import engine, number, one

from pipeline.engines.faulty import Faulty
from pipeline.engines.replayed import Replayed
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Context, ServerState, Update
from pipeline.federated.algorithms import fedbuff
from pipeline.federated.callbacks.stopping import Stopping
from pipeline.federated.events import Event
from pipeline.federated.faults import Faults
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import Tolerance


def buffered(size: int, staleness: float = 0.5, rate: float = 1.0) -> Algorithm:
    return fedbuff.build(fedbuff.Hyperparameters(buffer=size, staleness=staleness, server_learning_rate=rate))


def change(value: float, examples: int, version: int) -> Update:
    return Update(one(value), examples, 1, version=version)


def after(algorithm: Algorithm, *updates: Update, round_: int) -> float:
    return number(algorithm.server_update(ServerState(one(10.0)), list(updates), Context(1, round_)).adapter)


def test_a_stale_change_counts_less() -> None:
    """From 10 in round 4, a = 0.5: a change of 2 asked in round 4 (s = 1), of 8 in round 1 (s = 4^−0.5 = 0.5).

    10 + (2 + 0.5 · 8) / 2 = 13. Weighed by 3 and 1 examples: 10 + (3 · 2 + 1 · 0.5 · 8) / 4 = 12.5.
    """
    assert after(buffered(2), change(2.0, 1, 4), change(8.0, 1, 1), round_=4) == 13.0
    assert after(buffered(2), change(2.0, 3, 4), change(8.0, 1, 1), round_=4) == 12.5


def test_without_staleness_and_with_a_half_step() -> None:
    """a = 0: 10 + (2 + 8) / 2 = 15; with η = 0.5 half of the way, 12.5."""
    assert after(buffered(2, staleness=0.0), change(2.0, 1, 4), change(8.0, 1, 1), round_=4) == 15.0
    assert after(buffered(2, 0.0, 0.5), change(2.0, 1, 4), change(8.0, 1, 1), round_=4) == 12.5


def test_a_buffer_of_all_is_federated_averaging(make_client) -> None:  # type: ignore[no-untyped-def]
    """Nothing is stale then; to 1e-6, since changes are added where FedAvg averages models."""
    ours, theirs = (train(algorithm, three(make_client), rounds=3) for algorithm in (buffered(3), FEDAVG))
    for name, tensor in theirs.progress.server.adapter.items():
        assert torch.allclose(ours.progress.server.adapter[name], tensor, atol=1e-6, rtol=0)
    losses = [[row.server_validation_loss for row in run.progress.history] for run in (ours, theirs)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def run(size: int, faults: Faults, rounds: int, **best: float) -> Progress:
    algorithm = buffered(size, staleness=0.0)
    made = Faulty(engine(algorithm, **best), faults, 1000.0, seed=1, sends="change")
    rules = Tolerance(deadline=1000.0, repeats=9)
    begun = initial_progress(algorithm, one(0.0), len(best))
    return run_rounds(algorithm, made, begun, Participation(), [Stopping(rounds, 99)], seed=1, rules=rules)


def test_the_server_goes_on_after_the_first_answers_and_the_others_come_later() -> None:
    """A and B, paces apart, a buffer of one: in round 1 the faster answers, in round 2 it was asked again or the other.

    Whoever is slow was asked in round 1 and is still out after it.
    """
    progress = run(1, Faults(spread=1.0), 1, A=4.0, B=8.0)
    (waiting,) = progress.pending
    answered = {"A": "B", "B": "A"}[waiting.name]
    assert waiting.version == 1
    assert number(progress.server.adapter) == {"A": 2.0, "B": 4.0}[answered]
    assert [row.client for row in progress.history if row.steps] == [answered]


def test_an_answer_to_an_earlier_round_is_taken_as_a_change() -> None:
    """C is five times as slow as the others are. In the end all three have been heard, C from an earlier round."""
    progress = run(2, Faults(spread=1.0), 6, A=4.0, B=8.0, C=12.0)
    heard = {row.client for row in progress.history if row.steps}
    assert heard == {"A", "B", "C"}
    assert {event.kind for event in progress.events} == {"arrived"}


def test_a_client_that_fails_is_free_to_be_drawn_again() -> None:
    progress = run(2, Faults(dropout=0.5), 8, A=4.0, B=8.0, C=12.0, D=16.0)
    assert progress.round == 8
    assert {event.kind for event in progress.events} == {"arrived", "missing", "repeated"}
    assert len(progress.pending) <= 4


def test_a_buffer_that_is_never_full_is_said() -> None:
    """Three clients never give four answers to one version."""
    with pytest.raises(QuorumError, match="round 1: 3 updates came, and the buffer holds 4"):
        run(4, Faults(), 1, A=4.0, B=8.0, C=12.0)


def test_recorded_arrivals_replayed_in_process_give_the_same_bits() -> None:
    """On a clock, with faults, answers came in some order; in that order the models are the same without a clock."""
    best = {"A": 4.0, "B": 8.0, "C": 12.0, "D": 16.0}
    first = run(2, Faults(spread=1.0, dropout=0.3), 8, **best)
    algorithm = buffered(2, staleness=0.0)
    replayed = Replayed(engine(algorithm, **best), first.events)
    rules = Tolerance(deadline=1000.0, repeats=9)
    begun = initial_progress(algorithm, one(0.0), len(best))
    again = run_rounds(algorithm, replayed, begun, Participation(), [Stopping(8, 99)], seed=1, rules=rules)
    assert same(again.server.adapter, first.server.adapter)
    losses = [[row.server_validation_loss for row in progress.history] for progress in (again, first)]
    assert losses[0] == losses[1]


def test_a_record_of_another_training_is_refused() -> None:
    algorithm = buffered(1)
    replayed = Replayed(engine(algorithm, A=4.0), [Event(1, "Z", "arrived", "asked in round 1")])
    begun = initial_progress(algorithm, one(0.0), 1)
    with pytest.raises(QuorumError, match="round 1: Z was not asked here; replay it with its own order"):
        run_rounds(algorithm, replayed, begun, Participation(), [Stopping(1, 1)], seed=1)
