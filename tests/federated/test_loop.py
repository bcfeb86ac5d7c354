"""Which clients take part in which round, the progress before the first, and random numbers by name."""

from federations import build
from halfway import engine, one

from pipeline.federated.loop import Participation, initial_progress, select_clients
from pipeline.federated.randomness import Randomness, batch_order

NAMES = [f"client {number}" for number in range(20)]


def test_clients_are_selected_by_seed_and_round_in_their_own_order() -> None:
    """All without a number or with a large one; each at some time."""
    chosen = {(s, n): select_clients(NAMES, 5, seed=s, number=n) for s in (1, 2) for n in range(1, 41)}
    assert all(len(set(own)) == 5 and own == [name for name in NAMES if name in own] for own in chosen.values())
    assert set(chosen[1, 1]) == set(select_clients(NAMES[::-1], 5, seed=1, number=1))
    assert len({tuple(chosen[s, n]) for s in (1, 2) for n in (1, 2)}) == 4
    assert {name for (seed, _), own in chosen.items() if seed == 1 for name in own} == set(NAMES)
    assert all(select_clients(NAMES, count, seed=1, number=1) == NAMES for count in (None, 20, 99))


def test_clients_are_drawn_by_their_examples() -> None:
    """One of two with 3 of 4 examples: in 2,000 rounds 1,500 times, with a standard deviation of 19."""
    rounds = [select_clients(["A", "B"], 1, 1, number, {"A": 1, "B": 3}) for number in range(2000)]
    assert abs(rounds.count(["B"]) - 1500) < 80


def test_a_client_is_present_from_the_round_in_which_it_joins() -> None:
    who = Participation(joins={"A": 1, "C": 3})
    assert [who.present("ABC", number) for number in (1, 2, 3, 4)] == [["A", "B"], ["A", "B"], [*"ABC"], [*"ABC"]]
    assert [who.joining("ABC", number) for number in (1, 2, 3, 4)] == [[], [], ["C"], []]


def test_a_server_knows_the_number_of_all_examples() -> None:
    """SCAFFOLD weighs by it. Two clients have one each."""
    algorithm = build("SCAFFOLD")
    memory = initial_progress(algorithm, one(1.0), engine(algorithm, A=4.0, B=8.0)).server.memory
    assert {name: tensor.tolist() for name, tensor in memory.items()} == {"variate.w": [0.0], "examples_of_all": 2}


def test_batch_order_depends_on_seed_client_round_and_epoch_alone() -> None:
    base = batch_order(Randomness(1, "a", 1), 0, 50)
    assert sorted(base) == list(range(50))
    assert base == batch_order(Randomness(1, "a", 1), 0, 50)
    assert Randomness(1, "a", 1).number("dropout") != Randomness(1, "a", 1).number("draw")
    for rng, epoch in (((2, "a", 1), 0), ((1, "b", 1), 0), ((1, "a", 2), 0), ((1, "a", 1), 1)):
        assert batch_order(Randomness(*rng), epoch, 50) != base
