"""A fixed shuffle, and the examples of the corpora that a plan names."""

from pathlib import Path

import pytest
from conftest import make_example
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import examples_of, sampled, write_examples
from pipeline.corpora.hash_order import hash_order
from pipeline.errors import QuorumError
from pipeline.workspace import layout
from pipeline.workspace.files import write_json

IDS = st.lists(st.text("abcdef0123", min_size=1, max_size=6), unique=True, max_size=40)


@given(IDS)
def test_the_shuffle_depends_on_the_ids_alone(ids: list[str]) -> None:
    assert hash_order(ids) == hash_order(ids[::-1])
    assert sorted(hash_order(ids)) == sorted(ids)


@given(IDS, st.text("abcdef0123", min_size=7, max_size=7))
def test_one_more_name_leaves_the_others_in_their_order(ids: list[str], new: str) -> None:
    assert [identity for identity in hash_order([*ids, new]) if identity != new] == hash_order(ids)


def test_the_order_is_that_of_salted_hashes_the_same_on_every_machine() -> None:
    """The first digits of sha256 of `a`, `b` and `c` are ca, 3e and 2e; of `1/a`, `1/b` and `1/c` bf, da and df."""
    assert hash_order(["a", "b", "c"]) == ["c", "b", "a"]
    assert hash_order(["a", "b", "c"], salt="1/") == ["a", "b", "c"]


def lay(corpus: str, numbers: range, source: str = "mirror") -> None:
    examples = [make_example(number, domain=corpus) for number in numbers]
    write_examples(layout.examples(corpus), examples)
    write_json(layout.notes(corpus), {"source": {"source": source}})


def test_examples_are_of_the_corpora_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QMSum has three examples, and a sample of two is in the place of SAMSum. What is not named is not read."""
    monkeypatch.chdir(tmp_path)
    lay("qmsum", range(3))
    lay("samsum", range(3, 5), "sample")
    read = examples_of(["samsum", "qmsum"], Conversation)
    assert [example.meeting for example in read.values()] == ["m3", "m4", "m0", "m1", "m2"]
    assert sampled(["qmsum", "samsum"]) == {"samsum"}
    layout.examples("samsum").write_text("no example")
    layout.notes("samsum").unlink()
    assert [example.meeting for example in examples_of(["qmsum"], Conversation).values()] == ["m0", "m1", "m2"]
    assert sampled(["qmsum"]) == set()
    for corpus, message in (("samsum", r"examples\.jsonl: line 1: malformed JSON"), ("ami", "is missing")):
        with pytest.raises(QuorumError, match=message):
            examples_of(["qmsum", corpus], Conversation)
