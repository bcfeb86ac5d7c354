"""Which updates of a round count, which clients are assigned again, and what follows if there are too few.

Clients A, B, C have their optima at 4, 80 and 12, with one example each. From 0 they train to 2, 40 and 6: federated
averaging gives 16 with B and 4 without.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
import torch
from federations import FEDAVG, SINGLE, same
from halfway import engine, number, one, run

from pipeline.engines.faulty import Faulty
from pipeline.engines.in_process import InProcess
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Form, Sent, Trace, Update
from pipeline.federated.engine import Arrival, Assignment, Failure
from pipeline.federated.faults import Faults
from pipeline.federated.figures import Bounds
from pipeline.federated.inspection import refusal
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import STRICT, Tolerance
from pipeline.model.adapter import Adapter


class Disturbed(InProcess):
    """A client's next answers are disturbed as its list says; after that they are unchanged."""

    plan: Mapping[str, deque[str]] = {}

    def arrivals(self) -> Iterator[Arrival | Failure]:
        for arrival in super().arrivals():
            own = self.plan.get(arrival.name)
            yield from DISTURBANCES[own.popleft()](arrival) if own else [arrival]


DISTURBANCES: dict[str, Callable[[Arrival], list[Arrival | Failure]]] = {
    "silent": lambda arrival: [Failure(arrival.name, arrival.version, "never begins")],
    "twice": lambda arrival: [arrival, arrival],
    "nan": lambda arrival: [replace(arrival, update=replace(arrival.update, adapter=one(float("nan"))))],
    "late": lambda arrival: [replace(arrival, version=arrival.version - 1)],
}
MISSING = ("B", "missing", "never begins")
TOO_FEW = "2 of 3 clients answered well, and 3 are needed (B: never begins)"
W, B = torch.zeros(2, 3), torch.zeros(2)
GOOD = {"w": W, "b": B}
ANSWERS = [
    ({"w": torch.ones(2, 3), "b": B + 2}, {"c": B}, None),
    ({"w": torch.ones(2, 3), "b": B + 3}, {}, "changes the model by 4.9, over 4"),  # √(6 · 1 + 2 · 9)
    ({"w": W}, {}, "lacks tensor b"),
    (GOOD | {"secret": torch.zeros(1)}, {}, "has unknown tensors (1)"),
    (GOOD | {"w": torch.zeros(3, 2)}, {}, "has w as float32 3x2, not float32 2x3"),
    (GOOD | {"w": W.double()}, {}, "has w as float64 2x3, not float32 2x3"),
    (GOOD | {"b": torch.tensor([0.0, torch.nan])}, {}, "has a number in b that is not finite"),
    (GOOD | {"b": torch.tensor([torch.inf, 0.0])}, {}, "has a number in b that is not finite"),
    (GOOD | {"b": torch.tensor([1e30, 0.0])}, {}, "changes the model by 1e+30, over 4"),
    (GOOD, {"c": torch.zeros(3)}, "has c as float32 3, not float32 2"),
    (GOOD, {"c": torch.tensor([1e30, 0.0])}, "changes the model by 1e+30, over 4"),
    (GOOD, {"x": B}, "has unknown tensors (1)"),
]
MEMORIES = [
    (Bounds(0.0, 1.0), {"p": torch.tensor([0.0, 1.0])}, None),
    (Bounds(0.0, 1.0), {"p": torch.tensor([0.0, 1.5])}, "has a number in p that is not between 0 and 1"),
    (Bounds(0.0, 1.0), {"p": torch.zeros(3)}, "has p as float32 3, not float32 2"),
    (Bounds(0.0, 1.0), {}, "lacks tensor p"),
    (Bounds(0.0, 1.0), {"p": torch.zeros(2), "c": B}, "has unknown tensors (1)"),
    (Bounds(0.0, 99.0), {"p": torch.tensor([6.0, 8.0])}, None),
    (Bounds(0.0), {"p": torch.tensor([6.0, 8.0])}, "changes the model by 10, over 4"),
]


def trained(rules: Tolerance = STRICT, rounds: int = 1, algorithm: Algorithm = FEDAVG, **plan: list[str]) -> Progress:
    made = engine(algorithm, Disturbed, A=4.0, B=80.0, C=12.0)
    made.plan = {name: deque(own) for name, own in plan.items()}
    return run(algorithm, made, rounds, rules)


@pytest.mark.parametrize(
    ("rules", "plan", "expected", "events"),
    [
        (STRICT, {}, (2 + 40 + 6) / 3, []),
        (Tolerance(minimum=2, repeats=5), {"B": ["silent"]}, (2 + 6) / 2, [MISSING]),
        (STRICT, {"A": ["twice"]}, 16.0, [("A", "refused", "was not requested, or arrived before")]),
        (Tolerance(minimum=2), {"B": ["late"]}, 4.0, [("B", "refused", "is late: of round 0")]),
        (Tolerance(minimum=2), {"B": ["nan"]}, 4.0, [("B", "refused", "has a number in w that is not finite")]),
        (Tolerance(without_quorum="skip"), {"B": ["silent"]}, 0.0, [MISSING, ("", "skipped", TOO_FEW)]),
    ],
    ids=["all", "the minimum", "twice", "late", "not a number", "skipped"],
)
def test_which_updates_a_round_counts(
    rules: Tolerance, plan: dict[str, list[str]], expected: float, events: list[tuple[str, str, str]]
) -> None:
    progress = trained(rules, **plan)
    assert number(progress.server.adapter) == expected
    assert [(event.client, event.kind, event.why) for event in progress.events] == events


def test_what_is_bad_never_reaches_an_aggregate() -> None:
    """All 66 updates of B are bad, in three ways. The average is of A and C, who lead to (4 + 12) / 2 = 8."""
    progress = trained(Tolerance(minimum=2), 66, B=["nan", "silent", "late"] * 22)
    assert (number(progress.server.adapter), len(progress.events)) == (pytest.approx(8.0), 66)


def test_a_client_without_an_update_has_no_training_in_its_row_and_a_skipped_round_counts() -> None:
    """The second round has all updates, from 0: 16."""
    progress = trained(Tolerance(without_quorum="skip"), 2, B=["silent"])
    assert (progress.round, number(progress.server.adapter)) == (2, 16.0)
    trainings = [(row.client, row.train_loss is None, row.steps) for row in progress.history[:3]]
    assert trainings == [("A", False, 1), ("B", True, 0), ("C", False, 1)]


@pytest.mark.parametrize("repeats", [0, 1])
def test_without_enough_updates_the_training_stops_after_all_repeats(repeats: int) -> None:
    with pytest.raises(QuorumError, match=rf"^round 1: {re.escape(TOO_FEW)}; run again, [^\n]*$"):
        trained(Tolerance(repeats=repeats), B=["silent"] * (repeats + 1))


def test_a_repeated_assignment_has_the_bits_of_an_undisturbed_one_and_a_pause_leaves_no_trace() -> None:
    """A client's round is named by (seed, client, round). Without a clock, the engine pauses by itself."""
    disturbed, still = trained(Tolerance(repeats=2, pause=30.0), B=["nan", "silent"]), trained()
    assert same(disturbed.server.adapter, still.server.adapter)
    assert disturbed.history == still.history
    assert [event.kind for event in disturbed.events] == ["refused", "repeated", "missing", "repeated"]


def test_a_pause_before_a_repeat_passes_on_the_simulated_clock() -> None:
    """All take 30 s, and B's updates are all bad: assigned at 0, 60 and 120, it answers last at 150."""
    faults = Faults(spread=0.0, seconds=30.0, poisoned={"B": "nan"})
    rules = Tolerance(repeats=2, pause=30.0, without_quorum="skip")
    assert run(FEDAVG, Faulty(engine(FEDAVG, A=4.0, B=80.0), faults, None, seed=1), 1, rules).clock == 150.0


def test_a_missing_client_is_logged_even_if_the_server_reads_no_updates() -> None:
    assert [event.kind for event in trained(Tolerance(minimum=1), 1, SINGLE, A=["silent"]).events] == ["missing"]


def refused(update: Adapter, memory: Adapter, holds: dict[str, Form] | None = None) -> str | None:
    """Why an answer to w, b and, in the memory, c is refused; `holds` is what the algorithm declares."""
    algorithm = FEDAVG if holds is None else replace(FEDAVG, holds=lambda _sent: holds)
    arrival = Arrival("A", Update(update, 1, 1, memory), 1, Trace(0.0, 1, 0.0))
    return refusal(arrival, Assignment("A", Sent(GOOD, {"c": B}), 1), "", algorithm, largest_change=4.0)


@pytest.mark.parametrize(("adapter", "memory", "expected"), ANSWERS)
def test_a_bad_answer_is_refused_by_name(adapter: Adapter, memory: Adapter, expected: str | None) -> None:
    """Of c it may send as much, or nothing."""
    assert refused(adapter, memory) == expected


@pytest.mark.parametrize(("bounds", "memory", "expected"), MEMORIES)
def test_a_memory_is_refused_that_is_not_as_declared(bounds: Bounds, memory: Adapter, expected: str | None) -> None:
    """Two numbers p, which the client was not sent; if they have a largest value, they are no change of the model."""
    assert refused(GOOD, memory, {"p": Form((2,), bounds)}) == expected
