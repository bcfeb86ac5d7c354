"""What clients store: in blobs, the last used in memory, too, with the behaviour of a dict."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.federated.algorithm import ClientState
from pipeline.federated.blobs import Blobs
from pipeline.federated.client_store import ClientStore


def state(value: float) -> ClientState:
    return ClientState({"w": torch.tensor([value])}, {"step": torch.tensor(value)})


def value(found: ClientState) -> tuple[float, float]:
    return found.adapter["w"].item(), found.memory["step"].item()


def test_the_last_used_values_are_in_memory_and_the_others_are_read() -> None:
    """A is read after B was set, so B leaves memory when C is set. The records open another store."""
    blobs = Blobs()
    clients = ClientStore(blobs, ClientState, in_memory=2)
    first, second = state(1.0), state(2.0)
    clients["A"], clients["B"] = first, second
    assert clients["A"] is first
    clients["C"] = state(3.0)
    assert clients["A"] is first
    assert clients["B"] is not second
    for store in (clients, ClientStore(blobs, ClientState, clients.records)):
        assert [value(store[name]) for name in ("A", "B", "C")] == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


@given(st.lists(st.tuples(st.sampled_from("ABCDE"), st.one_of(st.none(), st.integers(0, 9))), max_size=30))
def test_it_behaves_as_a_dict(moves: list[tuple[str, int | None]]) -> None:
    """After setting and removing clients in any order."""
    clients, plain = ClientStore(Blobs(), ClientState, in_memory=2), dict[str, tuple[float, float]]()
    for name, number in moves:
        if number is not None:
            clients[name], plain[name] = state(float(number)), (float(number), float(number))
        elif name in plain:
            assert value(clients.pop(name)) == plain.pop(name)
        assert (list(clients), len(clients), name in clients) == (list(plain), len(plain), name in plain)
    assert {name: value(found) for name, found in clients.items()} == plain
