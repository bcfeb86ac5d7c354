"""Random numbers by name: equal names give equal numbers."""

from __future__ import annotations

import torch

from pipeline.federated.algorithm import Context
from pipeline.federated.randomness import Randomness, batch_order


def test_batch_order_depends_on_seed_client_round_and_epoch_alone() -> None:
    base = batch_order(Randomness(1, "a", 1), 0, 50)
    assert sorted(base) == list(range(50))
    assert base == batch_order(Randomness(1, "a", 1), 0, 50)
    for rng, epoch in (((2, "a", 1), 0), ((1, "b", 1), 0), ((1, "a", 2), 0), ((1, "a", 1), 1)):
        assert batch_order(Randomness(*rng), epoch, 50) != base


def test_numbers_depend_on_their_purpose() -> None:
    rng = Randomness(1, "a", 1)
    assert rng.number("dropout") == rng.number("dropout") != rng.number("draw")


def test_the_servers_randomness_depends_on_seed_and_round_alone() -> None:
    def numbers(seed: int, number: int) -> list[float]:
        return torch.rand(3, generator=Context(seed, number).generator()).tolist()

    assert numbers(1, 1) == numbers(1, 1)
    assert len({tuple(numbers(seed, number)) for seed in (1, 2) for number in (1, 2)}) == 4
