"""Who takes part in which round."""

from __future__ import annotations

import torch

from pipeline.federated.algorithm import ServerState
from pipeline.federated.algorithms import fedavg, scaffold
from pipeline.federated.history import Round
from pipeline.federated.loop import Participation, initial_progress, select_clients
from pipeline.federated.state import Progress

NAMES = [f"client {number}" for number in range(20)]


def test_without_a_number_all_are_drawn() -> None:
    assert select_clients(NAMES, None, seed=1, number=1) == NAMES
    assert select_clients(NAMES, 20, seed=1, number=1) == select_clients(NAMES, 99, seed=1, number=1) == NAMES


def test_so_many_are_drawn_in_their_own_order() -> None:
    chosen = select_clients(NAMES, 5, seed=1, number=1)
    assert len(set(chosen)) == 5
    assert chosen == [name for name in NAMES if name in chosen]


def test_the_draw_depends_on_seed_and_round_alone() -> None:
    assert select_clients(NAMES, 5, seed=1, number=1) == [
        n for n in NAMES if n in select_clients(NAMES[::-1], 5, seed=1, number=1)
    ]
    draws = {tuple(select_clients(NAMES, 5, seed=seed, number=number)) for seed in (1, 2) for number in (1, 2)}
    assert len(draws) == 4


def test_everyone_is_drawn_at_some_time() -> None:
    assert {name for number in range(1, 41) for name in select_clients(NAMES, 5, seed=1, number=number)} == set(NAMES)


def test_a_client_is_present_from_the_round_in_which_it_joins() -> None:
    who = Participation(joins={"C": 3})
    assert [who.present("ABC", number) for number in (1, 2, 3, 4)] == [["A", "B"], ["A", "B"], [*"ABC"], [*"ABC"]]
    assert [who.joining("ABC", number) for number in (1, 2, 3, 4)] == [[], [], ["C"], []]


def test_who_is_there_from_the_first_round_on_does_not_join() -> None:
    assert Participation(joins={"A": 1}).joining("AB", 1) == []


def test_before_the_first_round_nothing_is_known() -> None:
    algorithm = fedavg.build(fedavg.Hyperparameters())
    progress = initial_progress(algorithm, {"w": torch.ones(1)}, 7)
    assert (progress.round, progress.stale, progress.history, progress.last) == (0, 0, (), [])
    assert progress.server.adapter["w"].item() == 1.0


def test_a_server_is_told_how_many_examples_all_have() -> None:
    """SCAFFOLD weighs by them."""
    algorithm = scaffold.build(scaffold.Hyperparameters())
    server = initial_progress(algorithm, {"w": torch.ones(1)}, 7).server
    assert {name: tensor.tolist() for name, tensor in server.memory.items()} == {
        "variate.w": [0.0],
        "examples_of_all": 7,
    }


def test_the_last_rounds_rows_stand_in_their_order() -> None:
    history = tuple(Round(1, number, client) for number in (1, 2) for client in "AB")
    assert Progress(2, ServerState({}), history=history).last == list(history[2:])
