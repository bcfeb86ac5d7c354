"""Texts that occur twice: in one split of people's own data, counted between clients, and tests that are trained on."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeline.clients.manifest import Manifest, seen_in_training
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
    """x occurs at both, twice at a: three texts. y is a's alone, though twice. Empty texts do not count."""
    assert equal_between({"a": ["x", "x", "y", "y", ""], "b": ["x", "z", ""]}) == 3


def test_a_test_text_is_seen_if_any_client_trains_on_it() -> None:
    """4 is equal to 1, of another client; 5 is empty, as 2 is."""
    texts = {"1": "x", "2": "", "3": "y", "4": "x", "5": "", "6": "z"}
    manifest: Manifest = {
        "a": {"train": ["1", "2"], "val": [], "test": ["6"]},
        "b": {"train": ["3"], "val": [], "test": ["4", "5"]},
    }
    assert seen_in_training(manifest, texts) == ["4"]
