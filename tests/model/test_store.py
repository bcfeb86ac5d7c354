"""The prefix store: what goes in comes out, and what is wrong is one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import make_backbone, make_example, render_all

from pipeline.errors import QuorumError
from pipeline.model.backbone import Limits
from pipeline.model.store import PrefixStore, entry_key

PREFIX = {"targets": torch.tensor([1, 2]), "hidden": torch.tensor([[1.0, 2.0]])}


def test_an_entry_comes_back_bit_for_bit_also_the_second_time(tmp_path: Path) -> None:
    store = PrefixStore(tmp_path)
    store.put("ab", PREFIX)
    for _ in range(2):
        found = store.training(["ab"])[0]
        assert all(torch.equal(found[name], tensor) for name, tensor in PREFIX.items())


def test_a_missing_entry_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        QuorumError, match="missing from the prefix store; run `dvc repro --force --single-item encode`"
    ):
        PrefixStore(tmp_path).training(["ab"])


def test_a_truncated_entry_is_one_line_and_counts_as_missing(tmp_path: Path) -> None:
    store = PrefixStore(tmp_path)
    store.put("ab", PREFIX)
    store.path("ab").write_bytes(store.path("ab").read_bytes()[:50])
    with pytest.raises(QuorumError, match="damaged"):
        store.training(["ab"])
    assert not store.has("ab")


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    store = PrefixStore(tmp_path)
    store.put("ab", PREFIX)
    content = bytearray(store.path("ab").read_bytes())
    content[-1] ^= 1
    store.path("ab").write_bytes(bytes(content))
    with pytest.raises(QuorumError, match="checksum does not match"):
        store.training(["ab"])
    assert not store.has("ab"), "else encoding would not mend it"


def test_an_entry_of_another_order_is_refused(tmp_path: Path) -> None:
    store = PrefixStore(tmp_path)
    store.put("ab", PREFIX)
    store.path("ab").rename(store.path("ab").with_name("abc.safetensors"))
    with pytest.raises(QuorumError, match="belongs to another order"):
        store.training(["abc"])


def test_the_key_depends_on_weights_code_layers_and_tokens() -> None:
    two, one = make_backbone("llama", 2), make_backbone("llama", 1)
    rendered = render_all(two, 1)[0]
    shorter = two.render(make_example(0), Limits(90, 10))
    keys = {
        entry_key("w", "e", two, rendered),
        entry_key("v", "e", two, rendered),
        entry_key("w", "f", two, rendered),
        entry_key("w", "e", one, rendered),
        entry_key("w", "e", two, shorter),
    }
    assert len(keys) == 5
    assert entry_key("w", "e", two, rendered) in keys
