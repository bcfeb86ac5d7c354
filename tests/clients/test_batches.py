"""How examples fall into batches, and rounds that are too short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clients.batches import SMALLEST_BATCH, batch_sizes, batches, short_rounds


@pytest.mark.parametrize(
    ("count", "size", "sizes"),
    [(32, 16, [16, 16]), (33, 16, [16, 17]), (36, 16, [16, 16, 4]), (3, 16, [3]), (19, 16, [19]), (6, 2, [2, 2, 2])],
)
def test_a_last_batch_of_under_four_joins_its_neighbour(count: int, size: int, sizes: list[int]) -> None:
    assert batch_sizes(count, size) == sizes


@given(st.integers(0, 200), st.integers(1, 40))
def test_every_example_comes_once_and_in_order(count: int, size: int) -> None:
    order = list(range(count))[::-1]
    parts = list(batches(order, size))
    assert [i for part in parts for i in part] == order
    assert all(len(part) < size + SMALLEST_BATCH for part in parts)


def test_a_round_of_fewer_than_five_steps_is_short() -> None:
    """67 examples are 5 batches, of which the last has 3 and joins: 4 steps; 68 are 5. Two epochs double them."""
    manifest = {name: {"train": list(map(str, range(n))), "val": [], "test": []} for name, n in (("A", 67), ("B", 68))}
    assert short_rounds(manifest, 16, 1) == {"A": 4}  # type: ignore[arg-type]
    assert short_rounds(manifest, 16, 2) == {}  # type: ignore[arg-type]
