"""Which answers of a round count, who is asked again, and what is done where there are too few.

Clients A, B, C have their best at 4, 8 and 12, one example each. From 0 they train to 2, 4 and 6: federated averaging
gives 4. Without B it gives (2 + 6) / 2 = 4 as well, so B's best is 80 where its absence should show.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
import torch
from federations import same
from halfway import Halfway, engine, number, one

from pipeline.engines.faulty import Faulty
from pipeline.engines.in_process import InProcess
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Sent
from pipeline.federated.algorithms import fedavg, krum, single
from pipeline.federated.callbacks.stopping import Stopping
from pipeline.federated.engine import Arrival, Failure
from pipeline.federated.events import Event
from pipeline.federated.faults import Faults
from pipeline.federated.inspection import refusal
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import STRICT, Tolerance

FEDAVG = fedavg.build(fedavg.Hyperparameters())
SINGLE = single.build(single.Hyperparameters())

Spoil = Callable[[Arrival], list[Arrival | Failure]]


class Spoiled(InProcess):
    """Each client's next answers become what its list says; after that it answers as it is."""

    plan: Mapping[str, deque[Spoil]] = {}

    def arrivals(self) -> Iterator[Arrival | Failure]:
        for arrival in super().arrivals():
            assert isinstance(arrival, Arrival)
            own = self.plan.get(arrival.name)
            yield from own.popleft()(arrival) if own else [arrival]


def silent(arrival: Arrival) -> list[Arrival | Failure]:
    return [Failure(arrival.name, arrival.version, "never begins")]


def twice(arrival: Arrival) -> list[Arrival | Failure]:
    return [arrival, arrival]


def with_nan(arrival: Arrival) -> list[Arrival | Failure]:
    return [replace(arrival, update=replace(arrival.update, adapter=one(float("nan"))))]


def of_another_round(arrival: Arrival) -> list[Arrival | Failure]:
    return [replace(arrival, version=arrival.version - 1)]


def trained(
    rules: Tolerance, plan: Mapping[str, list[Spoil]], rounds: int = 1, algorithm: Algorithm = FEDAVG
) -> Progress:
    made = engine(algorithm, Spoiled, A=4.0, B=80.0, C=12.0)
    assert isinstance(made, Spoiled)
    made.plan = {name: deque(own) for name, own in plan.items()}
    begun = initial_progress(algorithm, one(0.0), 3)
    return run_rounds(algorithm, made, begun, Participation(), [Stopping(rounds, 99)], seed=1, rules=rules)


def server(progress: Progress) -> float:
    return number(progress.server.adapter)


def kinds(progress: Progress) -> list[tuple[int, str, str]]:
    return [(event.round, event.client, event.kind) for event in progress.events]


def test_all_answer_and_nothing_is_noted() -> None:
    """(2 + 40 + 6) / 3 = 16."""
    progress = trained(STRICT, {})
    assert (server(progress), progress.events) == (16.0, ())


def test_without_rules_a_missing_client_stops_the_training() -> None:
    with pytest.raises(QuorumError) as caught:
        trained(STRICT, {"B": [silent]})
    assert str(caught.value) == (
        "round 1: 2 of 3 clients answered well, and 3 are needed (B: never begins); run again, or let tolerance in "
        "params.yaml repeat or skip such rounds"
    )


def test_enough_of_them_make_a_round() -> None:
    """(2 + 6) / 2 = 4."""
    progress = trained(Tolerance(minimum=2), {"B": [silent]})
    assert server(progress) == 4.0
    assert progress.events == (Event(1, "B", "missing", "never begins"),)


def test_a_client_without_an_answer_has_no_losses_of_training_in_its_row() -> None:
    progress = trained(Tolerance(minimum=2), {"B": [silent]})
    assert [(row.client, row.train_loss is None, row.steps) for row in progress.history] == [
        ("A", False, 1),
        ("B", True, 0),
        ("C", False, 1),
    ]


def test_who_is_missing_is_asked_again_and_the_round_is_as_if_nothing_had_been() -> None:
    """B's answer is refused, then it trains as before: its round is named by (seed, client, round)."""
    disturbed, still = trained(Tolerance(repeats=2), {"B": [with_nan, silent]}), trained(STRICT, {})
    assert same(disturbed.server.adapter, still.server.adapter)
    assert [replace(row, figures={}) for row in disturbed.history] == list(still.history)
    assert kinds(disturbed) == [(1, "B", kind) for kind in ("refused", "repeated", "missing", "repeated")]


def test_a_pause_before_a_repeat_passes_on_the_simulated_clock() -> None:
    """Everyone takes 30 s, and B's answer is never good: asked at 0, 60 and 120, it is last heard of at 150."""
    inner = engine(FEDAVG, A=4.0, B=80.0)
    made = Faulty(inner, Faults(spread=0.0, seconds=30.0, poisoned={"B": "nan"}), None, seed=1)
    rules = Tolerance(repeats=2, pause=30.0, without_quorum="skip")
    begun = initial_progress(FEDAVG, one(0.0), 2)
    progress = run_rounds(FEDAVG, made, begun, Participation(), [Stopping(1, 9)], seed=1, rules=rules)
    assert progress.clock == 150.0


def test_a_pause_leaves_no_trace_where_there_is_no_clock() -> None:
    """As on machines that are really apart, where the engine waits: the history is an undisturbed one's."""
    progress = trained(Tolerance(repeats=2, pause=30.0), {"B": [with_nan, silent]})
    assert progress.history == trained(STRICT, {}).history


def test_rules_without_a_pause_are_the_rules_they_were() -> None:
    """So that no training is made again for a rule that it does not have."""
    assert "pause" not in STRICT.model_dump(mode="json")


def test_repeats_run_out() -> None:
    with pytest.raises(QuorumError, match=r"2 of 3 clients answered well.*\(B: never begins\)"):
        trained(Tolerance(repeats=1), {"B": [silent, silent]})


def test_nobody_is_asked_again_where_there_are_enough() -> None:
    assert kinds(trained(Tolerance(minimum=2, repeats=5), {"B": [silent]})) == [(1, "B", "missing")]


def test_a_round_that_is_skipped_leaves_the_server_as_it_is_and_counts() -> None:
    """Then a good one: 16."""
    progress = trained(Tolerance(without_quorum="skip"), {"B": [silent]}, rounds=2)
    assert (progress.round, server(progress)) == (2, 16.0)
    assert kinds(progress) == [(1, "B", "missing"), (1, "", "skipped")]


def test_a_skipped_round_of_a_rule_over_all_updates_is_no_error_of_the_rule() -> None:
    """Krum of five needs five; it is never asked with four."""
    five = krum.build(krum.Hyperparameters(faulty=1))
    made = engine(five, Spoiled, A=1.0, B=2.0, C=3.0, D=4.0, E=5.0)
    assert isinstance(made, Spoiled)
    made.plan = {"E": deque([silent])}
    rules = Tolerance(minimum=5, without_quorum="skip")
    begun = initial_progress(five, one(0.0), 5)
    progress = run_rounds(five, made, begun, Participation(), [Stopping(1, 9)], seed=1, rules=rules)
    assert kinds(progress) == [(1, "E", "missing"), (1, "", "skipped")]


def test_where_the_server_wants_no_update_a_missing_client_is_noted_too() -> None:
    assert kinds(trained(Tolerance(minimum=1), {"A": [silent]}, algorithm=SINGLE)) == [(1, "A", "missing")]


def test_what_comes_twice_counts_once() -> None:
    progress = trained(STRICT, {"A": [twice]})
    assert server(progress) == 16.0
    assert [event.why for event in progress.events] == ["was not asked for, or has come before"]


def test_an_answer_to_an_earlier_round_is_late() -> None:
    progress = trained(Tolerance(minimum=2), {"B": [of_another_round]})
    assert [event.why for event in progress.events] == ["is late: of round 0"]


def test_what_is_bad_never_reaches_an_aggregate() -> None:
    """Of 200 answers a third are bad, in all the ways that there are; what is averaged is finite and right."""
    bad: list[Spoil] = [with_nan, silent, of_another_round]
    plan = {"B": [bad[i % 3] for i in range(66)]}
    progress = trained(Tolerance(minimum=2), plan, rounds=66)
    assert server(progress) == pytest.approx(8.0)  # halfway between 4 and 12, to which A and C alone lead
    assert len(progress.events) == 66


# -- what can be seen from an answer alone ----------------------------------------------------------------------------

SENT = Sent({"w": torch.zeros(2, 3), "b": torch.zeros(2)})


def why(largest: float = 10.0, **tensors: torch.Tensor) -> str | None:
    made = engine(FEDAVG, A=4.0)
    made.submit("A", Sent(one(0.0)), 1)
    (arrival,) = made.arrivals()
    assert isinstance(arrival, Arrival)
    asked = next(iter(Gathered(SENT).asked.values()))
    return refusal(replace(arrival, update=replace(arrival.update, adapter=tensors)), asked, "", "adapter", largest)


class Gathered:
    """A client that was sent something in round 1."""

    def __init__(self, sent: Sent) -> None:
        from pipeline.federated.engine import Assignment

        self.asked = {"A": Assignment("A", sent, 1)}


def test_a_good_answer_is_not_refused() -> None:
    """Its change has length √(6 · 1 + 2 · 4) = 3.74."""
    assert why(w=torch.ones(2, 3), b=torch.full((2,), 2.0)) is None
    assert why(w=torch.ones(2, 3), b=torch.full((2,), 2.0), largest=3.7) == "changes the model by 3.74, over 3.7"


@pytest.mark.parametrize(
    ("tensors", "told"),
    [
        ({"w": torch.zeros(2, 3)}, "lacks tensor b"),
        (
            {"w": torch.zeros(2, 3), "b": torch.zeros(2), "secret": torch.zeros(1)},
            "has 1 tensors that nobody asked for",
        ),
        ({"w": torch.zeros(3, 2), "b": torch.zeros(2)}, "has w as float32 3x2, not float32 2x3"),
        ({"w": torch.zeros(2, 3).double(), "b": torch.zeros(2)}, "has w as float64 2x3, not float32 2x3"),
        ({"w": torch.zeros(2, 3), "b": torch.tensor([0.0, torch.nan])}, "has a number in b that is not finite"),
        ({"w": torch.zeros(2, 3), "b": torch.tensor([torch.inf, 0.0])}, "has a number in b that is not finite"),
        ({"w": torch.zeros(2, 3), "b": torch.tensor([1e30, 0.0])}, "changes the model by 1e+30, over 10"),
    ],
)
def test_a_bad_answer_is_refused_by_name(tensors: dict[str, torch.Tensor], told: str) -> None:
    assert why(**tensors) == told


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        ({"c": torch.zeros(2)}, None),
        ({}, None),
        ({"c": torch.zeros(3)}, "has c as float32 3, not float32 2"),
        ({"c": torch.tensor([1e30, 0.0])}, "changes the model by 1e+30, over 10"),
        ({"x": torch.zeros(2)}, "has 1 tensors that nobody asked for"),
    ],
)
def test_what_travels_beside_an_adapter_is_looked_at_too(memory: dict[str, torch.Tensor], told: str | None) -> None:
    """The client was sent c; it may send as much, or nothing."""
    made = engine(FEDAVG, A=4.0)
    made.submit("A", Sent(one(0.0)), 1)
    (arrival,) = made.arrivals()
    assert isinstance(arrival, Arrival)
    sent = Sent({"w": torch.zeros(2)}, {"c": torch.zeros(2)})
    update = replace(arrival.update, adapter={"w": torch.ones(2)}, memory=memory)
    asked = Gathered(sent).asked["A"]
    assert refusal(replace(arrival, update=update), asked, "", "adapter", 10.0) == told


def test_another_trainings_answer_is_refused() -> None:
    made = InProcess(FEDAVG, clients := {"A": Halfway(4.0)}, clients, engine(FEDAVG, A=4.0).private, seed=1, job="one")
    begun = initial_progress(FEDAVG, one(0.0), 1)
    with pytest.raises(QuorumError, match="A: is of another training"):
        run_rounds(FEDAVG, made, begun, Participation(), [Stopping(1, 1)], seed=1, job="other")
