"""Clients in this process: the order of answers, what is sent, what is stored, and what never leaves."""

import math
from collections.abc import Iterator
from unittest.mock import patch

import pytest
import torch
from federations import CENTRALIZED, FEDAVG, SINGLE, select
from halfway import Halfway, answers, engine, number, one, run

from pipeline.engines.in_process import InProcess
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Sent, Update
from pipeline.federated.collector import UpdateCollector
from pipeline.federated.engine import Assignment, Losses
from pipeline.federated.randomness import Randomness
from pipeline.federated.tolerance import STRICT
from pipeline.federated.wire import transmitted

OWN = select(5)
"""Each client continues from its own adapter."""


def scored(made: InProcess, name: str, server: float | None, began: float, version: int) -> Losses:
    """One client's losses after a round."""
    return made.score([name], None if server is None else one(server), one(began), version)[name]


def collected(made: InProcess) -> Iterator[Update]:
    """The updates of the first round, in which A and B are sent 0."""
    return UpdateCollector(made, FEDAVG, STRICT, "", 1, Sent(one(0.0)), {}, 0.0).in_order("AB")


def test_updates_are_in_the_order_of_names_in_any_order_of_answers() -> None:
    """The last assignment is answered first."""
    made = engine(FEDAVG, A=4.0, B=8.0)
    with patch.object(made, "arrivals", lambda: reversed([*InProcess.arrivals(made)])):
        assert [number(update.adapter) for update in collected(made)] == [2.0, 4.0]


def test_an_update_arrives_before_the_next_client_trains() -> None:
    """So that a server that averages needs memory for one update."""
    made = engine(FEDAVG, A=4.0, B=8.0)
    next(collected(made))
    assert [number(made.private.states[name].adapter) for name in "AB"] == [2.0, 0.0]


def test_randomness_is_named_by_seed_client_and_round() -> None:
    client = Halfway(4.0)
    list(answers(engine(FEDAVG, seed=7, clients={"A": client}), "A", 0.0, version=3))
    assert client.rngs == [Randomness(7, "A", 3)]


def test_bytes_are_counted_both_ways_and_are_zero_if_nothing_is_sent() -> None:
    memory = {"memory": torch.zeros(100)}
    down, up = transmitted(Sent(one(0.0), memory))[1], transmitted(Sent(one(2.0)))[1]
    for algorithm, expected in ((FEDAVG, (down, up)), (SINGLE, (0, 0))):
        made = engine(algorithm, A=4.0)
        made.submit(Assignment("A", Sent(one(0.0), memory), 1))
        (arrival,) = made.arrivals()
        assert (arrival.trace.bytes_down, arrival.trace.bytes_up) == expected


def test_examples_that_are_of_no_client_score_each_model_that_a_round_trained() -> None:
    """Of optimum 10: after the first round 2 and 4 are 8 and 6 away; in the second A alone trains, to 3."""
    made = engine(SINGLE, evaluated={"server": Halfway(10.0)}, A=4.0, B=8.0)
    for name in "AB":
        list(answers(made, name, 0.0))
    assert scored(made, "server", None, 0.0, 1).local == 7.0
    list(answers(made, "A", 0.0, version=2))
    assert scored(made, "server", None, 0.0, 2).local == 7.0
    assert "local" not in made.private.best


def test_a_clients_state_and_masks_are_stored_and_no_mask_leaves_it() -> None:
    made = engine(OWN, A=4.0)
    found = list(answers(made, "A", 0.0, 0.0))
    assert [(number(arrival.update.adapter), arrival.trace.masks) for arrival in found] == [(2.0, {}), (3.0, {})]
    assert number(made.private.states["A"].adapter) == 3.0
    masks = {key: rows.tolist() for key, rows in made.private.masks.items()}
    assert masks == {"A/odd/1": [[True, False]], "A/odd/2": [[False, False]]}


def test_no_model_is_scored_twice() -> None:
    """A client's own, the server's, and in the first round what was sent, which later is the last round's server."""
    client = Halfway(4.0)
    run(FEDAVG, engine(FEDAVG, clients={"A": client}), 3)
    assert client.scored == 3 + 2 + 2


def test_a_clients_best_round_is_saved_for_each_model() -> None:
    """The server's model is at 3, then 5, which is no better; the client's own at 2, then 3."""
    made = engine(OWN, A=4.0)
    for version, server in ((1, 3.0), (2, 5.0)):
        list(answers(made, "A", 0.5, version=version))
        scored(made, "A", server, 0.5, version)
    local, shared = made.private.best["local"]["A"], made.private.best["server"]["A"]
    assert (local.round, local.loss, number(local.adapter), number(local.before)) == (2, 1.0, 3.0, 2.0)
    assert (shared.round, shared.loss, number(shared.adapter), number(shared.before)) == (1, 1.0, 3.0, 0.0)
    assert number(local.sent) == number(shared.sent) == 0.5


@pytest.mark.parametrize("resumed", [False, True])
def test_the_best_of_an_idle_round_has_the_clients_adapter_before_it(resumed: bool) -> None:
    """A trains in round 1 alone, from 0 to 2. In round 2 the server's model is its best, at 4."""
    made = engine(FEDAVG, A=4.0)
    list(answers(made, "A", 0.0))
    scored(made, "A", 2.0, 0.0, 1)
    if resumed:
        made = InProcess(FEDAVG, {"A": Halfway(4.0)}, {"A": Halfway(4.0)}, made.private, seed=1)
    scored(made, "A", 4.0, 2.0, 2)
    assert number(made.private.best["server"]["A"].before) == 2.0


def test_a_pooled_model_is_scored_for_every_client() -> None:
    """With its optimum at 4, it is at 2, then 3, then 3.5: the first is A's best, the last is B's."""
    made = engine(CENTRALIZED, evaluated={"A": Halfway(2.0), "B": Halfway(8.0)}, all=4.0)
    assert (list(made.trainers), made.scored) == (["all"], {"A": "all", "B": "all"})
    for version in (1, 2, 3):
        list(answers(made, "all", 0.0, version=version))
        made.score(["A", "B"], None, one(0.0), version)
    best = made.private.best["local"]
    found = {name: (own.round, own.loss, number(own.before)) for name, own in best.items()}
    assert found == {"A": (1, 0.0, 0.0), "B": (3, 4.5, 3.0)}


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_validation_loss_that_is_not_finite_is_one_line(loss: float) -> None:
    made = engine(FEDAVG, A=4.0)
    with pytest.raises(QuorumError, match=rf"^.*round 2, client A: the validation loss is {loss}; lower.*\Z"):
        scored(made, "A", loss, 0.0, 2)
    assert "server" not in made.private.best
