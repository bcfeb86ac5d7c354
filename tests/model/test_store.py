"""The prefix store: what goes in comes out, and what is wrong is one line."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pipeline.errors import QuorumError
from pipeline.model.entry import entry_file
from pipeline.model.store import PrefixStore

PREFIX = {"targets": torch.tensor([1, 2]), "hidden": torch.tensor([[1.0, 2.0]])}


@pytest.fixture
def store(tmp_path: Path) -> PrefixStore:
    """A store with one entry, `ab`."""
    made = PrefixStore(tmp_path)
    made.put("ab", PREFIX)
    return made


def test_an_entry_comes_back_bit_for_bit_also_the_second_time(store: PrefixStore) -> None:
    for _ in range(2):
        found = store.training(["ab"])[0]
        assert all(torch.equal(found[name], tensor) for name, tensor in PREFIX.items())


def test_a_missing_entry_is_one_line(store: PrefixStore) -> None:
    with pytest.raises(
        QuorumError, match="missing from the prefix store; run `dvc repro --force --single-item encode`"
    ):
        store.training(["xy"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:50], "damaged"),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), "checksum does not match"),
    ],
    ids=["truncated", "one bit"],
)
def test_a_damaged_entry_is_refused_and_counts_as_missing(
    store: PrefixStore, damage: Callable[[bytes], bytes], message: str
) -> None:
    file = entry_file(store.folder, "ab")
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(QuorumError, match=message):
        store.training(["ab"])
    assert not store.has("ab"), "else encoding would not compute it again"


def test_an_entry_of_another_order_is_refused(store: PrefixStore) -> None:
    entry_file(store.folder, "ab").rename(entry_file(store.folder, "abc"))
    with pytest.raises(QuorumError, match="belongs to another order"):
        store.training(["abc"])
