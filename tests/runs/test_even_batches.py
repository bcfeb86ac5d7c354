"""Batches of like many rows."""

from __future__ import annotations

from pipeline.runs.even_batches import in_batches


def test_batches_have_like_many_rows_and_keep_the_order() -> None:
    """Keys with 1, 1, 1, 3, 3 and 3 rows in three batches of about four; equal ones are cut evenly."""
    assert in_batches(list("abcdef"), [1, 1, 1, 3, 3, 3], 3) == [["a", "b", "c", "d"], ["e"], ["f"]]
    assert in_batches(list("abcde"), [7] * 5, 2) == [["a", "b", "c"], ["d", "e"]]
    assert in_batches(["a"], [2], 5) == [["a"]]


def test_a_hundred_keys_are_cut_into_seven_batches_of_fourteen_or_fifteen() -> None:
    assert {len(batch) for batch in in_batches(range(100), [1] * 100, 7)} == {14, 15}
