"""A fixed shuffle, and the examples of the corpora that a plan names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from conftest import make_example
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.prepared import examples_of, is_sample, sampled
from pipeline.errors import QuorumError
from pipeline.workspace import layout
from pipeline.workspace.files import write_json, write_jsonl

IDS = st.lists(st.text("abcdef0123", min_size=1, max_size=6), unique=True, max_size=40)


@given(IDS)
def test_the_shuffle_depends_on_the_ids_alone(ids: list[str]) -> None:
    assert hash_order(ids) == hash_order(ids[::-1])
    assert sorted(hash_order(ids)) == sorted(ids)


@given(IDS, st.text("abcdef0123", min_size=7, max_size=7))
def test_one_more_name_leaves_the_others_in_their_order(ids: list[str], new: str) -> None:
    assert [identity for identity in hash_order([*ids, new]) if identity != new] == hash_order(ids)


def test_the_order_is_that_of_salted_hashes() -> None:
    """sha256 of `1/a`, `1/b` and `1/c`."""
    digests = {identity: hashlib.sha256(f"1/{identity}".encode()).hexdigest() for identity in "abc"}
    assert hash_order(["a", "b", "c"], salt="1/") == sorted("abc", key=lambda identity: digests[identity])


def test_the_order_is_the_same_on_every_machine() -> None:
    """The first hexadecimal digits of `a`, `b` and `c` are ca, 3e and 2e; of `1/a`, `1/b`, `1/c` they are another."""
    assert hash_order(["a", "b", "c"]) == ["c", "b", "a"]
    assert hash_order([str(n) for n in range(9)]) != hash_order([str(n) for n in range(9)], salt="1/")


def lay(corpus: str, numbers: range, source: str = "mirror") -> None:
    examples = [make_example(number, domain=corpus) for number in numbers]
    write_jsonl(layout.examples(corpus), [example.to_json() for example in examples])
    write_json(layout.notes(corpus), {"source": {"source": source}})


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QMSum of three examples, and a sample in the place of SAMSum of two."""
    monkeypatch.chdir(tmp_path)
    lay("qmsum", range(3))
    lay("samsum", range(3, 5), "sample")


@pytest.mark.usefixtures("two")
def test_examples_are_of_the_corpora_that_are_named() -> None:
    assert [example.meeting for example in examples_of(["qmsum"]).values()] == ["m0", "m1", "m2"]
    assert [example.meeting for example in examples_of(["samsum", "qmsum"]).values()] == ["m3", "m4", "m0", "m1", "m2"]


@pytest.mark.usefixtures("two")
def test_a_corpus_that_is_not_named_is_not_read() -> None:
    """Not even where it cannot be read."""
    layout.examples("samsum").write_text("no example")
    layout.notes("samsum").unlink()
    assert len(examples_of(["qmsum"])) == 3
    assert sampled(["qmsum"]) == set()
    with pytest.raises(QuorumError, match=r"samsum/examples\.jsonl: line 1: malformed JSON"):
        examples_of(["qmsum", "samsum"])
    with pytest.raises(QuorumError, match=r"ami/examples\.jsonl: is missing"):
        examples_of(["ami"])


@pytest.mark.usefixtures("two")
def test_a_sample_is_told_by_its_notes() -> None:
    assert sampled(["qmsum", "samsum"]) == {"samsum"}
    assert is_sample({"source": {"source": "sample"}})
    assert not is_sample({"source": {"source": "upstream"}})
