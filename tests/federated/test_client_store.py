"""What clients keep: the last used in memory, the others in blobs, and nobody sees a difference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pipeline.federated.algorithm import ClientState
from pipeline.federated.blobs import Blobs
from pipeline.federated.client_store import ClientStore
from pipeline.federated.state import STATES


class Noted(Blobs):
    """Blobs without a file, numbered as they come."""

    def __init__(self) -> None:
        super().__init__(Path("/dev/null/nowhere"))
        self.known: dict[str, dict[str, Tensor]] = {}

    def put(self, tensors: Mapping[str, Tensor]) -> str:
        name = str(len(self.known))
        self.known[name] = dict(tensors)
        return name

    def get(self, name: str) -> dict[str, Tensor]:
        return self.known[name]


def state(value: float) -> ClientState:
    return ClientState({"w": torch.tensor([value])}, {"step": torch.tensor(value)})


def value(kept: ClientState) -> tuple[float, float]:
    return kept.adapter["w"].item(), kept.memory["step"].item()


def store(blobs: Blobs, in_memory: int = 2) -> ClientStore[ClientState]:
    return ClientStore(blobs, STATES, in_memory=in_memory)


def test_as_many_as_are_held_are_never_written() -> None:
    blobs = Noted()
    kept = store(blobs)
    kept["A"], kept["B"] = state(1.0), state(2.0)
    assert blobs.known == {}


def test_the_least_recently_used_makes_room() -> None:
    """A is used after B was set, so that B goes when C comes: its adapter and its memory are two blobs."""
    blobs = Noted()
    kept = store(blobs)
    first = state(1.0)
    kept["A"], kept["B"] = first, state(2.0)
    assert kept["A"] is first
    kept["C"] = state(3.0)
    assert [list(tensors) for tensors in blobs.known.values()] == [["w"], ["step"]]
    assert kept["A"] is first
    assert [value(kept[name]) for name in ("A", "B", "C")] == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


@given(st.lists(st.tuples(st.sampled_from("ABCDE"), st.one_of(st.none(), st.integers(0, 9))), max_size=30))
def test_it_is_a_dict_to_whoever_uses_it(moves: list[tuple[str, int | None]]) -> None:
    """Whatever is set, and removed."""
    kept, plain = store(Noted()), dict[str, tuple[float, float]]()
    for name, number in moves:
        if number is not None:
            kept[name], plain[name] = state(float(number)), (float(number), float(number))
        elif name in plain:
            assert value(kept.pop(name)) == plain.pop(name)
        assert list(kept) == list(plain)
        assert len(kept) == len(plain)
        assert (name in kept) == (name in plain)
    assert {name: value(state) for name, state in kept.items()} == plain


def test_an_unknown_client_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        store(Noted())["A"]


def test_a_new_value_replaces_what_was_written() -> None:
    kept = store(Noted(), in_memory=1)
    for number in (1.0, 2.0):
        kept["A"], kept["B"] = state(number), state(9.0)
    assert value(kept["A"]) == (2.0, 2.0)


def test_a_record_is_written_once() -> None:
    blobs = Noted()
    kept = store(blobs)
    kept["A"] = state(1.0)
    assert kept.record("A") == kept.record("A") == ["0", "1"]
    assert len(blobs.known) == 2


def test_records_open_another_store() -> None:
    blobs = Noted()
    kept = store(blobs)
    kept["A"] = state(1.0)
    assert value(ClientStore(blobs, STATES, {"A": kept.record("A")})["A"]) == (1.0, 1.0)


def test_emptying_reads_no_blob() -> None:
    blobs = Noted()
    kept = store(blobs, in_memory=1)
    kept["A"], kept["B"] = state(1.0), state(2.0)
    blobs.known.clear()
    kept.clear()
    assert list(kept) == []
