"""Clients in this process: who answers when, what travels, what is kept of it and what never leaves.

A client's model is one number. Training goes halfway to the client's best number, from which the validation loss is the
distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from federations import begin
from halfway import Halfway, engine, number, one

from pipeline.engines.in_process import InProcess
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientState, Sent, Update
from pipeline.federated.algorithms import centralized, fedavg, fedselectkd, single
from pipeline.federated.callbacks.stopping import Stopping
from pipeline.federated.client_store import ClientStore
from pipeline.federated.collector import UpdateCollector
from pipeline.federated.engine import Arrival, Losses, Report
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.randomness import Randomness
from pipeline.federated.state import STATES, Private, Progress
from pipeline.federated.tolerance import STRICT
from pipeline.federated.wire import transmitted

FEDAVG = fedavg.build(fedavg.Hyperparameters())
SINGLE = single.build(single.Hyperparameters())
CENTRALIZED = centralized.build(centralized.Hyperparameters())
OWN = fedselectkd.build(fedselectkd.Hyperparameters.model_validate({"tau": 5, "lambda": 0.2}))
"""Each client goes on from its own adapter."""


def scored(made: InProcess, name: str, server: float | None, began: float, version: int) -> Losses:
    """One client's losses after a round."""
    return made.score([name], None if server is None else one(server), one(began), version)[name]


def pooled() -> InProcess:
    """One model, drawn to 4, which is scored for A, whose best is 2, and for B, whose best is 8."""
    private = begin({"all": ClientState(one(0.0))})
    evaluated = {"A": Halfway(2.0), "B": Halfway(8.0)}
    return InProcess(CENTRALIZED, {"all": Halfway(4.0)}, evaluated, private, seed=1, trained_by={"A": "all", "B": "all"})


def test_answers_come_in_the_order_of_asking() -> None:
    made = engine(FEDAVG, A=4.0, B=8.0)
    for name in ("B", "A"):
        made.submit(name, Sent(one(0.0)), 1)
    arrived = list(made.arrivals())
    assert [(arrival.name, number(arrival.update.adapter)) for arrival in arrived] == [("B", 4.0), ("A", 2.0)]
    assert list(made.arrivals()) == []


def test_an_answer_says_which_round_it_was_asked_for() -> None:
    """One client asked twice, before either answer is taken."""
    made = engine(FEDAVG, A=4.0)
    made.submit("A", Sent(one(0.0)), 3)
    made.submit("A", Sent(one(2.0)), 4)
    found = [(arrival.version, number(arrival.update.adapter)) for arrival in made.arrivals()]
    assert found == [(3, 2.0), (4, 3.0)]


def test_a_client_can_be_asked_while_others_answer() -> None:
    made = engine(FEDAVG, A=4.0, B=8.0)
    made.submit("A", Sent(one(0.0)), 1)
    answers = made.arrivals()
    assert next(answers).name == "A"
    made.submit("B", Sent(one(0.0)), 1)
    assert [arrival.name for arrival in answers] == ["B"]


class Backwards(InProcess):
    """Whoever was asked last answers first."""

    def arrivals(self) -> Iterator[Arrival]:
        yield from list(super().arrivals())[::-1]


def gathered(made: InProcess, names: Sequence[str]) -> Iterator[Update]:
    """The updates of the first round, in which all are sent 0."""
    return UpdateCollector(made, 1, Sent(one(0.0)), "adapter", STRICT, "", {}, 0.0).in_order(names)


def test_a_round_is_in_the_order_of_names_whoever_answers_first() -> None:
    made = engine(FEDAVG, Backwards, A=4.0, B=8.0)
    assert [number(update.adapter) for update in gathered(made, ["A", "B"])] == [2.0, 4.0]


def test_an_update_arrives_before_the_next_client_trains() -> None:
    """So that a server that takes a mean holds one update at a time."""
    made = engine(FEDAVG, A=4.0, B=8.0)
    answers = gathered(made, ["A", "B"])
    next(answers)
    assert [number(made.private.states[name].adapter) for name in "AB"] == [2.0, 0.0]


def test_clients_train_where_the_server_wants_no_update() -> None:
    made = engine(SINGLE, A=4.0, B=8.0)
    run_rounds(SINGLE, made, initial_progress(SINGLE, one(0.0), 2), Participation(), [Stopping(1, 1)], seed=1)
    assert [number(made.private.states[name].adapter) for name in "AB"] == [2.0, 4.0]


def test_clients_in_files_train_as_those_in_memory_do(tmp_path: Path) -> None:
    """Forty clients, of whom three are held; those that sit a round out still have what they began with."""

    def trained(held: int) -> tuple[Progress, Private]:
        best = {f"client {place}": Halfway(float(place)) for place in range(40)}
        private = begin({}, tmp_path / str(held))
        private.states = ClientStore(private.blobs, STATES, in_memory=held)
        private.states.update({name: ClientState(one(0.0)) for name in best})
        made = InProcess(OWN, best, best, private, seed=1)
        who = Participation(clients_per_round=35)
        return run_rounds(OWN, made, initial_progress(OWN, one(0.0), 40), who, [Stopping(3, 3)], seed=1), private

    (progress, private), (other, in_memory) = trained(3), trained(99)
    assert progress.history == other.history
    assert number(progress.server.adapter) == number(other.server.adapter)
    for name in private.states:
        ours, theirs = private.best["local"][name], in_memory.best["local"][name]
        assert [number(a) for a in (ours.adapter, ours.before)] == [number(a) for a in (theirs.adapter, theirs.before)]


def test_who_answers_first_changes_nothing() -> None:
    def trained(kind: type[InProcess]) -> Progress:
        made = engine(FEDAVG, kind, A=0.1, B=0.7, C=0.3)
        return run_rounds(
            FEDAVG, made, initial_progress(FEDAVG, one(0.0), 3), Participation(), [Stopping(3, 3)], seed=1
        )

    one_way, other = trained(InProcess), trained(Backwards)
    assert one_way.history == other.history
    assert torch.equal(one_way.server.adapter["w"], other.server.adapter["w"])


def test_randomness_is_named_by_seed_client_and_round() -> None:
    made = engine(FEDAVG, seed=7, A=4.0)
    made.submit("A", Sent(one(0.0)), 3)
    (arrival,) = made.arrivals()
    assert arrival.report.loss == Randomness(7, "A", 3).number("loss")


def test_what_travels_is_weighed_both_ways() -> None:
    made = engine(FEDAVG, A=4.0)
    made.submit("A", Sent(one(0.0), {"memory": torch.zeros(100)}), 1)
    (arrival,) = made.arrivals()
    assert arrival.report.bytes_down == transmitted(one(0.0), {"memory": torch.zeros(100)})[2]
    assert arrival.report.bytes_up == transmitted(one(2.0), {})[2]


def test_where_nothing_travels_nothing_is_weighed() -> None:
    made = engine(SINGLE, A=4.0)
    made.submit("A", Sent(one(0.0)), 1)
    (arrival,) = made.arrivals()
    assert (arrival.report.bytes_down, arrival.report.bytes_up) == (0, 0)


def test_only_an_update_and_numbers_travel_to_the_server() -> None:
    """Its adapter, two counts and its algorithm's memory; and numbers beside it, never a mask.

    The version is noted by the server, where it wants to know how old an answer is.
    """
    assert [known.name for known in fields(Update)] == ["adapter", "examples", "steps", "memory", "version"]
    told = ["loss", "steps", "seconds", "figures", "bytes_down", "bytes_up"]
    assert [known.name for known in fields(Report)] == told


def test_a_clients_state_and_masks_stay_with_it() -> None:
    made = engine(OWN, A=4.0)
    for version in (1, 2):
        made.submit("A", Sent(one(0.0)), version)
    arrived = list(made.arrivals())
    assert [number(arrival.update.adapter) for arrival in arrived] == [2.0, 3.0]
    assert number(made.private.states["A"].adapter) == 3.0
    kept = {version: rows.tolist() for version, rows in made.private.masks["A"]["odd"].items()}
    assert kept == {1: [[True, False]], 2: [[False, False]]}


def test_a_late_client_begins_with_the_adapter_that_it_joins_with() -> None:
    """From 6 halfway to 8; from its own 0 it would be 4."""
    made = engine(OWN, A=4.0, B=8.0)
    made.join("B", one(6.0), 2)
    made.submit("B", Sent(one(6.0)), 3)
    (arrival,) = made.arrivals()
    assert number(arrival.update.adapter) == 7.0


def test_both_models_are_scored() -> None:
    """A's own is at 2, the server's at 3, A's best at 4."""
    made = engine(FEDAVG, A=4.0)
    made.submit("A", Sent(one(0.0)), 1)
    list(made.arrivals())
    losses = scored(made, "A", 3.0, 0.0, 1)
    assert (losses.local, losses.server) == (2.0, 1.0)
    assert scored(made, "A", None, 0.0, 1).server is None


def test_no_model_is_scored_twice() -> None:
    """A client's own, the server's, and in the first round what was sent, which later is the last round's server."""
    client = Halfway(4.0)
    made = InProcess(FEDAVG, {"A": client}, {"A": client}, begin({"A": ClientState(one(0.0))}), seed=1)
    run_rounds(FEDAVG, made, initial_progress(FEDAVG, one(0.0), 1), Participation(), [Stopping(3, 3)], seed=1)
    assert client.scored == 3 + 2 + 2


def test_a_clients_best_round_is_kept_for_each_model() -> None:
    """The server's model is at 3, then 9; the client's own at 2, then 3."""
    made = engine(OWN, A=4.0)
    for version, server in ((1, 3.0), (2, 9.0)):
        made.submit("A", Sent(one(0.5)), version)
        list(made.arrivals())
        scored(made, "A", server, 0.5, version)
    local, shared = made.private.best["local"]["A"], made.private.best["server"]["A"]
    assert (local.round, local.loss, number(local.adapter), number(local.before)) == (2, 1.0, 3.0, 2.0)
    assert (shared.round, shared.loss, number(shared.adapter), number(shared.before)) == (1, 1.0, 3.0, 0.0)
    assert number(local.sent) == number(shared.sent) == 0.5


def test_an_equal_loss_later_is_no_better_round() -> None:
    made = engine(FEDAVG, A=4.0)
    for version in (1, 2):
        scored(made, "A", 3.0, 0.0, version)
    assert made.private.best["server"]["A"].round == 1


@pytest.mark.parametrize("anew", [False, True], ids=["one engine", "another one after a resumption"])
def test_before_an_idle_round_a_client_held_what_it_holds(anew: bool) -> None:
    """A trains in round 1 alone, from 0 to 2. In round 2 the server's model is its best, at 4: before it, A held 2."""
    made = engine(FEDAVG, A=4.0)
    made.submit("A", Sent(one(0.0)), 1)
    list(made.arrivals())
    scored(made, "A", 2.0, 0.0, 1)
    if anew:
        made = InProcess(FEDAVG, {"A": Halfway(4.0)}, {"A": Halfway(4.0)}, made.private, seed=1)
    scored(made, "A", 4.0, 2.0, 2)
    assert number(made.private.best["server"]["A"].before) == 2.0


def test_a_pooled_model_is_scored_for_every_client() -> None:
    """At 2, then 3, then 3.5: A is best served by the first, B by the last."""
    made = pooled()
    assert (list(made.trainers), made.scored) == (["all"], {"A": "all", "B": "all"})
    for version in (1, 2, 3):
        made.submit("all", Sent(one(0.0)), version)
        list(made.arrivals())
        made.score(["A", "B"], None, one(0.0), version)
    best = made.private.best["local"]
    assert {name: (kept.round, kept.loss) for name, kept in best.items()} == {"A": (1, 0.0), "B": (3, 4.5)}
    assert {name: number(kept.before) for name, kept in best.items()} == {"A": 0.0, "B": 3.0}


def test_a_pooled_clients_round_stands_in_everyones_row() -> None:
    progress = run_rounds(
        CENTRALIZED, pooled(), initial_progress(CENTRALIZED, one(0.0), 1), Participation(), [Stopping(1, 1)], seed=1
    )
    assert [(row.client, row.steps, row.local_validation_loss) for row in progress.history] == [
        ("A", 1, 0.0),
        ("B", 1, 6.0),
    ]


class Counted(dict[str, Halfway]):
    """Counts how often all of it is gone through."""

    passes = 0

    def __iter__(self) -> Iterator[str]:
        self.passes += 1
        return super().__iter__()


def test_a_round_goes_through_all_clients_a_few_times_not_once_a_client(tmp_path: Path) -> None:
    """Else ten times as many would cost a hundred times as much."""
    passes = []
    for count in (2, 20):
        clients = Counted({f"client {i}": Halfway(4.0) for i in range(count)})
        private = begin({name: ClientState(one(0.0)) for name in dict(clients)}, tmp_path / str(count))
        made = InProcess(FEDAVG, dict(clients), clients, private, seed=1)
        run_rounds(FEDAVG, made, initial_progress(FEDAVG, one(0.0), count), Participation(), [Stopping(1, 1)], seed=1)
        passes.append(clients.passes)
    assert passes[0] == passes[1]


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_validation_loss_that_is_not_finite_is_one_line(loss: float) -> None:
    made = engine(FEDAVG, A=4.0)
    with pytest.raises(QuorumError, match=f"round 2, client A: the validation loss is {loss}; lower") as caught:
        scored(made, "A", loss, 0.0, 2)
    assert "\n" not in str(caught.value)
    assert "server" not in made.private.best
