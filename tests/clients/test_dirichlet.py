"""Skewed partitions: the hand-worked draws, what they must keep, and the distributions that they are meant to have."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clients.dirichlet import deal, partition, sizes_of
from pipeline.errors import QuorumError


@pytest.mark.parametrize(
    ("shares", "total", "sizes"),
    [
        ((0.25,) * 4, 10, [3, 3, 2, 2]),  # ties go to the first
        # 1 + z · 7 = 4.5, 3.1, 2.4. Of 10, 9 are given; .5 is the largest remainder.
        ((0.5, 0.3, 0.2), 10, [5, 3, 2]),
        ((1 / 3, 1 / 3, 1 / 3), 7, [3, 2, 2]),
        ((1 / 7,) * 7, 49, [7] * 7),
    ],
)
def test_sizes_follow_the_draw_by_largest_remainders(shares: tuple[float, ...], total: int, sizes: list[int]) -> None:
    assert sizes_of(np.array(shares), total).tolist() == sizes


def test_a_client_that_finds_too_little_takes_of_what_is_left() -> None:
    """Labels a 4, b 4, c 2; sizes 5, 5; q = (1, 0, 0), (.6, .4, 0).

    The first wants 5 of a, finds 4, and fills 1 from b 4 : c 2. The second wants 3 of a and 2 of b, finds 2 of b, and
    fills 3 from b 1 : c 2.
    """
    dealt = deal(np.array([4, 4, 2]), np.array([5, 5]), np.array([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0]]))
    assert dealt.tolist() == [[4, 1, 0], [0, 3, 2]]


NAMES = st.lists(st.sampled_from("abcd"), min_size=6, max_size=60)
ALPHAS, BETAS = st.sampled_from([None, 0.1, 1.0, 50.0]), st.sampled_from([None, 0.2, 5.0])


@given(NAMES, st.integers(1, 3), ALPHAS, BETAS, st.integers(1, 2))
def test_every_example_is_dealt_once(
    labels: list[str], clients: int, alpha: float | None, beta: float | None, least: int
) -> None:
    ids = [f"e{i}" for i in range(len(labels))]
    dealt = partition(ids, labels, clients, seed=1, dataset="d", alpha=alpha, beta=beta, least=least)
    assert sorted(i for own in dealt for i in own) == sorted(ids)
    assert min(map(len, dealt)) >= least
    if beta is None:
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_the_same_names_give_the_same_partition() -> None:
    """Another seed, data set, number of clients or α draws anew."""

    def of(**other: Any) -> list[list[str]]:
        names: dict[str, Any] = {"clients": 4, "seed": 1, "dataset": "d", "alpha": 1.0}
        return partition([f"e{i}" for i in range(40)], ["a", "b"] * 20, **names | other)

    assert of() == of()
    assert all(of(**other) != of() for other in ({"seed": 2}, {"dataset": "x"}, {"clients": 5}, {"alpha": 2.0}))


def test_what_cannot_be_dealt_is_one_line() -> None:
    with pytest.raises(QuorumError, match="4 clients of at least 3 need 12 examples, and there are 8"):
        partition([f"e{i}" for i in range(8)], ["a", "b"] * 4, 4, seed=1, dataset="d", beta=1.0, least=3)


@pytest.mark.parametrize(("beta", "expected"), [(1.0, 0.990), (5.0, 0.445), (10.0, 0.314), (100.0, 0.099)])
def test_sizes_spread_as_the_draw(beta: float, expected: float) -> None:
    """The coefficient of variation of Dir(β 1) over 100 clients: √(99 / (100 β + 1)); of sizes nearly that."""
    found = []
    for seed in range(30):
        dealt = partition([f"e{i}" for i in range(10_000)], [""] * 10_000, 100, seed=seed, dataset="d", beta=beta)
        sizes = np.array([len(own) for own in dealt])
        found.append(sizes.std() / sizes.mean())
    assert np.mean(found) == pytest.approx(expected * 0.99, rel=0.05)


@pytest.mark.parametrize(("alpha", "expected"), [(1.0, 0.525), (5.0, 0.208), (10.0, 0.136)])
def test_clients_hold_labels_as_unequally_as_alpha_says(alpha: float, expected: float) -> None:
    """Uniform p over 20 labels: E Σq² = Σp² + (1 − Σp²) / (α + 1).

    Of the first tenth of 200 clients, for whom all labels are left; 500 texts each.
    """
    labels = [str(i % 20) for i in range(100_000)]
    found = []
    for seed in range(8):
        dealt = partition([str(i) for i in range(100_000)], labels, 200, seed=seed, dataset="d", alpha=alpha)
        for own in dealt[:20]:
            counts = np.bincount([int(i) % 20 for i in own], minlength=20)
            found.append(((counts / counts.sum()) ** 2).sum())
    assert np.mean(found) == pytest.approx(expected, rel=0.12)
