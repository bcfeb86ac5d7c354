"""Adapters: Eq. 5 and LoRA by hand, hooks, bytes and files; and stored prefixes, of which what is wrong is one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import make_backbone, prefixes_of
from torch import nn

from pipeline.errors import QuorumError
from pipeline.model.adapter import apply_adapter, init_adapter, pack, read_adapter, write_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.entry import entry_file
from pipeline.model.lora import init_lora, is_lora, lora
from pipeline.model.store import PrefixStore
from pipeline.model.tensor_file import digest_of_tensors, is_intact, save_checksums
from pipeline.workspace import layout

# n = 2, m = 1: W_down = (1, 1)ᵀ, W_up = (2, 4).
ADAPTER = {"layers.0.down": torch.tensor([[1.0], [1.0]]), "layers.0.up": torch.tensor([[2.0, 4.0]])}
ADAPTER |= {"layers.0.norm.weight": torch.ones(2), "layers.0.norm.bias": torch.zeros(2)}
RUN = "fedavg/1"
PREFIX = {"targets": torch.tensor([1, 2]), "hidden": torch.tensor([[1.0, 2.0]])}
EQ_5 = [
    # ReLU(1 + 3)·(2, 4) = (8, 16); Y + that = (9, 19); LayerNorm of two numbers is (−1, 1).
    ([1.0, 3.0], 0.0, True, [-1.0, 1.0]),
    # ReLU(−4) = 0, so LayerNorm of Y alone.
    ([-3.0, -1.0], 0.0, True, [-1.0, 1.0]),
    # LN(Y) + 1 = (0, 2); ReLU(2)·(2, 4) = (4, 8); Y + that.
    ([1.0, 3.0], 1.0, False, [5.0, 11.0]),
]


@pytest.mark.parametrize(("hidden", "shift", "post_norm", "expected"), EQ_5)
def test_eq_5_by_hand(hidden: list[float], shift: float, post_norm: bool, expected: list[float]) -> None:
    shifted = ADAPTER | {"layers.0.norm.bias": torch.full((2,), shift)}
    out = apply_adapter(shifted, 0, torch.tensor([hidden]), post_norm=post_norm)
    torch.testing.assert_close(out, torch.tensor([expected]), atol=1e-4, rtol=0)


def test_bytes_are_a_function_of_the_tensors() -> None:
    assert pack(ADAPTER, {"b": 1, "a": 2}) == pack(dict(ADAPTER), {"a": 2, "b": 1})


@pytest.fixture
def saved(short: Path) -> Path:
    """The adapter of client A in a run, as a training saves it, below the current folder."""
    path = layout.adapter(RUN, "A")
    write_adapter(path, ADAPTER)
    save_checksums(RUN)
    return path


def flipped(content: bytes) -> bytes:
    """With another last bit."""
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize("read", [read_adapter, digest_of_tensors])
def test_a_changed_adapter_is_refused(saved: Path, read: Callable[[Path], object]) -> None:
    read(saved)
    assert is_intact(RUN)
    saved.write_bytes(flipped(saved.read_bytes()))
    where = r"its sha256 .* in models/fedavg/1/sha256.json"
    with pytest.raises(QuorumError, match=rf"A.*: damaged adapter \({where}\); run `dvc repro train@fedavg`"):
        read(saved)
    assert not is_intact(RUN)


def test_an_adapter_of_a_training_without_checksums_is_read(saved: Path) -> None:
    layout.checksums(RUN).unlink()
    saved.write_bytes(flipped(saved.read_bytes()))
    assert set(read_adapter(saved)) == set(ADAPTER)
    saved.write_bytes(saved.read_bytes()[:40])
    with pytest.raises(QuorumError, match=r"damaged adapter \(.*\); run `dvc repro train@fedavg`"):
        read_adapter(saved)


def test_lora_changes_queries_and_values_above_the_first_adapted_layer() -> None:
    """Four layers, two adapted: the store ends with layer 2, so LoRA is in layer 3 alone."""
    assert sorted(make_backbone("llama").lora_shapes()) == ["layers.3.self_attn.q_proj", "layers.3.self_attn.v_proj"]
    of_bart = {name.split(".", 2)[2] for name in make_backbone("bart").lora_shapes()}
    assert of_bart == {f"{part}_attn.{side}_proj" for part in ("self", "encoder") for side in "qv"}


def test_a_fresh_adapter_changes_nothing_without_a_norm_behind_it(backbone: Backbone) -> None:
    prefixes, bare = prefixes_of(backbone), backbone.target_hidden(prefixes_of(backbone), {})
    fresh = init_lora(backbone.lora_shapes(), rank=4, seed=0)
    assert is_lora(fresh)
    assert torch.equal(backbone.target_hidden(prefixes, fresh), bare)
    if not backbone.post_norm:
        fresh = init_adapter(backbone.adapted_layers, backbone.width, 8, seed=1)
        assert torch.equal(backbone.target_hidden(prefixes, fresh), bare)


def test_loras_change_is_twice_b_a_x() -> None:
    """One projection by hand: W x + 2 B A x."""
    layer = nn.Module()
    layer.q_proj = nn.Linear(2, 2, bias=False)
    layer.q_proj.weight.data = torch.eye(2)
    a, b = torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0], [0.0]])
    adapter = {"layers.0.q_proj.lora_A": a, "layers.0.q_proj.lora_B": b}
    with lora([layer], adapter):
        assert layer.q_proj(torch.tensor([[3.0, 4.0]])).tolist() == [[3 + 2 * 7, 4]]
    assert layer.q_proj(torch.tensor([[3.0, 4.0]])).tolist() == [[3, 4]]


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


@pytest.mark.parametrize(
    ("key", "damage", "message"),
    [
        ("xy", bytes, "missing from the prefix store; run `dvc repro --force --single-item enc"),
        ("ab", lambda content: content[:50], "damaged"),
        ("ab", flipped, "checksum does not match"),
        ("ab", lambda content: content.replace(b'"ab', b'"xy'), "belongs to another order"),
    ],
    ids=["missing", "cut", "changed", "of another order"],
)
def test_a_bad_entry_is_refused_and_counts_as_missing(store: PrefixStore, key: str, damage: Any, message: str) -> None:
    file = entry_file(store.folder, "ab")
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(QuorumError, match=message):
        store.training([key])
    assert not store.has(key), "else encoding would not compute it again"
