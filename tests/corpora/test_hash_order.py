"""A fixed shuffle and its splits, texts that occur twice, and the examples of the corpora that a plan names."""

from collections import Counter
from pathlib import Path

import pytest
from conftest import make_example
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clients.manifest import seen_in_training
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import examples_of, sampled, write_examples
from pipeline.corpora.hash_order import hash_order, tenths
from pipeline.corpora.statistics import equal_between
from pipeline.errors import QuorumError
from pipeline.workspace import layout
from pipeline.workspace.files import write_json

IDS = st.lists(st.text("abcdef0123", min_size=1, max_size=6), unique=True, max_size=40)
NAMES = [f"text {number}" for number in range(20)]


@given(IDS, st.text("abcdef0123", min_size=7, max_size=7))
def test_the_shuffle_depends_on_the_ids_alone_and_one_more_leaves_their_order(ids: list[str], new: str) -> None:
    assert hash_order(ids) == hash_order(ids[::-1])
    assert sorted(hash_order(ids)) == sorted(ids)
    assert [identity for identity in hash_order([*ids, new]) if identity != new] == hash_order(ids)


def test_the_order_is_that_of_salted_hashes_the_same_on_every_machine() -> None:
    """The first digits of sha256 of `a`, `b` and `c` are ca, 3e and 2e; of `1/a`, `1/b` and `1/c` bf, da and df."""
    assert hash_order(["a", "b", "c"]) == ["c", "b", "a"]
    assert hash_order(["a", "b", "c"], salt="1/") == ["a", "b", "c"]


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
    held = {"a": {"train": ["1", "2"], "val": [], "test": ["6"]}, "b": {"train": ["3"], "val": [], "test": ["4", "5"]}}
    assert seen_in_training(held, texts) == ["4"]


def test_examples_are_of_the_corpora_that_are_named(short: Path) -> None:
    """QMSum has three examples, and a sample of two is in the place of SAMSum. What is not named is not read."""
    for corpus, numbers, source in (("qmsum", range(3), "mirror"), ("samsum", range(3, 5), "sample")):
        write_examples(layout.examples(corpus), (make_example(number, domain=corpus) for number in numbers))
        write_json(layout.notes(corpus), {"source": {"source": source}})
    read = examples_of(["samsum", "qmsum"], Conversation)
    assert [example.meeting for example in read.values()] == ["m3", "m4", "m0", "m1", "m2"]
    assert sampled(["qmsum", "samsum"]) == {"samsum"}
    layout.examples("samsum").write_text("no example")
    layout.notes("samsum").unlink()
    assert [example.meeting for example in examples_of(["qmsum"], Conversation).values()] == ["m0", "m1", "m2"]
    assert sampled(["qmsum"]) == set()
    with pytest.raises(QuorumError, match="is missing"):
        examples_of(["qmsum", "ami"], Conversation)
