"""What clients store: the last used in memory, the others in blobs, with the behaviour of a dict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pipeline.federated.algorithm import ClientState
from pipeline.federated.blobs import Blobs
from pipeline.federated.client_store import ClientStore


class Numbered(Blobs):
    """Blobs without a file, numbered in order."""

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


def value(found: ClientState) -> tuple[float, float]:
    return found.adapter["w"].item(), found.memory["step"].item()


def store(in_memory: int = 2) -> tuple[ClientStore[ClientState], Numbered]:
    blobs = Numbered()
    return ClientStore(blobs, ClientState, in_memory=in_memory), blobs


def test_the_least_recently_used_is_written_when_memory_is_full() -> None:
    """A is read after B was set, so B is written when C is set: its adapter and its memory are two blobs."""
    clients, blobs = store()
    first = state(1.0)
    clients["A"], clients["B"] = first, state(2.0)
    assert clients["A"] is first
    assert blobs.known == {}
    clients["C"] = state(3.0)
    assert [list(tensors) for tensors in blobs.known.values()] == [["w"], ["step"]]
    assert clients["A"] is first
    assert [value(clients[name]) for name in ("A", "B", "C")] == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


@given(st.lists(st.tuples(st.sampled_from("ABCDE"), st.one_of(st.none(), st.integers(0, 9))), max_size=30))
def test_it_behaves_as_a_dict(moves: list[tuple[str, int | None]]) -> None:
    """After setting and removing clients in any order."""
    clients, plain = store()[0], dict[str, tuple[float, float]]()
    for name, number in moves:
        if number is not None:
            clients[name], plain[name] = state(float(number)), (float(number), float(number))
        elif name in plain:
            assert value(clients.pop(name)) == plain.pop(name)
        assert list(clients) == list(plain)
        assert len(clients) == len(plain)
        assert (name in clients) == (name in plain)
    assert {name: value(found) for name, found in clients.items()} == plain


def test_a_record_is_written_once_and_opens_another_store() -> None:
    clients, blobs = store()
    clients["A"] = state(1.0)
    assert clients.record("A") == clients.record("A") == {"adapter": "0", "memory": "1"}
    assert len(blobs.known) == 2
    assert value(ClientStore(blobs, ClientState, {"A": {"adapter": "0", "memory": "1"}})["A"]) == (1.0, 1.0)
