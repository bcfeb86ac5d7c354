"""Partitions: properties that hold for any corpus."""

from __future__ import annotations

import pytest
from conftest import make_example
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpora.example import SPLITS, Example
from pipeline.errors import QuorumError
from pipeline.partitions.domains import partition
from pipeline.partitions.manifest import check, hash_order, take_at_most, take_fraction

IDS = st.lists(st.text("abcdef0123", min_size=1, max_size=6), unique=True, max_size=40)


def corpus(sizes: dict[str, tuple[int, int, int]]) -> dict[str, Example]:
    examples = {}
    number = 0
    for domain, counts in sizes.items():
        for split, count in zip(SPLITS, counts, strict=True):
            for _ in range(count):
                number += 1
                example = make_example(number, domain=domain, split=split)
                examples[example.id] = example
    return examples


@given(IDS, st.floats(0.01, 1))
def test_a_fraction_is_a_rounded_subset_in_order(ids: list[str], fraction: float) -> None:
    taken = take_fraction(ids, fraction)
    assert len(taken) == (max(1, round(fraction * len(ids))) if ids else 0)
    assert taken == [i for i in ids if i in taken]


@given(IDS, st.integers(0, 40), st.integers(0, 40))
def test_a_larger_sample_holds_the_smaller(ids: list[str], a: int, b: int) -> None:
    small, large = sorted((a, b))
    assert set(take_at_most(ids, small)) <= set(take_at_most(ids, large))


@given(IDS)
def test_the_shuffle_depends_on_the_ids_alone(ids: list[str]) -> None:
    assert hash_order(ids) == hash_order(ids[::-1])
    assert sorted(hash_order(ids)) == sorted(ids)


SIZES = st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(1, 12))


@given(st.fixed_dictionaries({"A": SIZES, "B": SIZES}), st.floats(0.05, 1), st.one_of(st.none(), st.integers(1, 10)))
def test_domains_scale_training_cap_validation_and_keep_test_whole(
    sizes: dict[str, tuple[int, int, int]], fraction: float, cap: int | None
) -> None:
    examples = corpus(sizes)
    manifest = partition(examples, ["A", "B"], train_fraction=fraction, validation_examples=cap)
    check(manifest, examples, "test")
    for client, (train, val, test) in sizes.items():
        held = manifest[client]
        assert len(held["train"]) == max(1, round(fraction * train))
        assert len(held["val"]) == (val if cap is None else min(val, cap))
        assert len(held["test"]) == test
        assert all(examples[i].domain == client and examples[i].split == split for split in SPLITS for i in held[split])


def test_a_client_without_examples_is_one_line() -> None:
    examples = corpus({"A": (2, 1, 1)})
    manifest = partition(examples, ["A", "B"], train_fraction=1, validation_examples=None)
    with pytest.raises(QuorumError, match="client B has no train examples"):
        check(manifest, examples, "manifest")


def test_a_meeting_in_training_and_test_is_a_leak_also_across_clients() -> None:
    examples = corpus({"A": (1, 1, 1), "B": (1, 1, 1)})
    leaked = next(e for e in examples.values() if e.domain == "A" and e.split == "train")
    twin = Example("other", leaked.corpus, "B", "test", leaked.meeting, "q", leaked.turns, "t")
    examples["other"] = twin
    manifest = partition(examples, ["A", "B"], train_fraction=1, validation_examples=None)
    with pytest.raises(QuorumError, match=f"meeting {leaked.meeting} is in the test of B and in the training of A"):
        check(manifest, examples, "manifest")
