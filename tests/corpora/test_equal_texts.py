"""Texts that occur twice stay in one split of people's own data, and are counted between clients."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpora.hash_order import hash_order, tenths
from pipeline.corpora.statistics import equal_between

NAMES = [f"text {number}" for number in range(20)]


def test_two_of_twenty_are_tested_and_two_validate() -> None:
    order, splits = hash_order(NAMES), tenths(NAMES)
    assert Counter(splits.values()) == {"train": 16, "val": 2, "test": 2}
    assert [splits[name] for name in order[:5]] == ["test", "test", "val", "val", "train"]


@given(st.lists(st.sampled_from(["a", "A ", "b  c", "b c", "d", ""]), min_size=17, max_size=17))
def test_equal_texts_are_in_one_split(texts: list[str]) -> None:
    """Empty ones are not equal: three of those leave enough to split."""
    pairs = list(zip(NAMES, [*texts, "", "", ""], strict=True))
    splits, seen = tenths(NAMES, pairs), dict[str, str]()
    for name, text in pairs:
        if same := " ".join(text.lower().split()):
            assert splits[name] == seen.setdefault(same, splits[name])


def test_a_name_with_two_texts_joins_those_of_both() -> None:
    """one - two by x, two - three by y."""
    splits = tenths([*NAMES, "one", "two", "three"], [("one", "x"), ("two", "X"), ("two", "y"), ("three", "y")])
    assert splits["one"] == splits["two"] == splits["three"]


def test_texts_of_two_clients_are_counted_at_both() -> None:
    """x occurs at both, twice at a: three texts. y is a's alone, though twice."""
    assert equal_between({"a": ["x", "X", "y", "y"], "b": ["x ", "z"]}) == 3
