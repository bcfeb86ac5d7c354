"""What clients store, and checkpoints: a resumed training has the same bits; a damaged checkpoint is one line."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from federations import BACKBONE, KEY, MIDDLE, Make, begin, build, select, train
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientState, ServerState
from pipeline.federated.blobs import FILE, Blobs
from pipeline.federated.checkpoint import load_progress, save_progress
from pipeline.federated.client_store import ClientStore
from pipeline.federated.history import Round
from pipeline.federated.state import Best, Private, Progress
from pipeline.model.adapter import digest
from pipeline.runs.training import Finished


def bits(value: Any) -> Any:
    """Records and tensors as plain values, without the seconds of rounds."""
    if isinstance(value, Private):
        return bits([value.states, value.best, value.masks])
    if is_dataclass(value):
        return bits({name: own for name, own in vars(value).items() if name != "seconds"})
    if isinstance(value, Mapping):
        return {key: bits(own) for key, own in value.items()}
    return [*map(bits, value)] if isinstance(value, list | tuple) else getattr(value, "tolist", lambda: value)()


INITIALLY_TAUGHT = {"tau": "q0.5", "lambda": 0.2, "teacher": "initial", "client_optimizer_state": "keep"}
RESUMED: dict[str, tuple[Algorithm, dict[str, Any]]] = {
    "selective": (select(MIDDLE), {}),
    "variates and a selection": (build("SCAFFOLD"), {"clients_per_round": 1}),
    "server moments and a late client": (build("AdaFedOPT", server_learning_rate=0.01), {"joins": {"B": 2}}),
    "client moments": (build("AdaFedAvg", client_optimizer_state="keep"), {}),
    "first adapter": (build("AdaFedSelectKD", **INITIALLY_TAUGHT), {}),
}


@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path: Path, make_client: Make, name: str) -> None:
    algorithm, who = RESUMED[name]
    clients = {"A": make_client(BACKBONE, 0, 4), "B": make_client(BACKBONE, 9, 5)}
    through = train(algorithm, clients, 3, patience=9, seed=1, **who)
    train(algorithm, clients, 1, patience=9, seed=1, checkpoints=tmp_path, **who)
    loaded = load_progress(tmp_path, KEY)
    assert loaded[0].round == 1
    resumed = train(algorithm, clients, 3, patience=9, seed=1, done=Finished(*loaded), **who)
    assert bits(resumed) == bits(through)


@pytest.fixture
def saved(tmp_path: Path, make_client: Make) -> Path:
    train(select(MIDDLE), {"A": make_client(BACKBONE, 0, 3)}, checkpoints=tmp_path)
    return tmp_path


def test_a_checkpoint_gives_back_all_that_was_saved(tmp_path: Path) -> None:
    """Every tensor has another number, so that none can replace another."""
    numbers = iter(range(99))

    def tensors(*names: str) -> dict[str, Tensor]:
        return {name: torch.tensor([float(next(numbers))]) for name in names}

    first = Round(1, 6, "A", 2.5, None, 2.0, 2.25, steps=3, bytes_up=7, seconds=1.5, figures={"tau": 5.0})
    history = (first, Round(1, 7, "A", server_validation_loss=2.125))
    progress = Progress(7, ServerState(tensors("w"), tensors("m")), {"A": 2.0}, stale=2, history=history)
    private = begin({name: ClientState(tensors("w"), tensors("v.w", "step")) for name in ("A", "B")}, tmp_path)
    private.best_of("local")["A"] = Best(5, 2.0, tensors("w"), tensors("w"), tensors("w"))
    private.best_of("server")["A"] = Best(6, 2.125, tensors("w"), tensors("w"), tensors("w"))
    private.masks["A/distilled/5"], private.masks["A/distilled/6"] = torch.tensor([[[True, False]], [[False, True]]])
    save_progress(KEY, progress, private)
    loaded = load_progress(tmp_path, KEY)
    assert bits(loaded) == bits((progress, private))
    assert loaded[0].history == history


def sql(folder: Path, statement: str, *values: Any) -> list[Any]:
    """Read a checkpoint's file, or break it from inside."""
    with closing(sqlite3.connect(folder / FILE)) as file, file:
        return file.execute(statement, values).fetchall()


def test_only_blobs_of_the_last_round_are_stored(saved: Path) -> None:
    text = Blobs(saved).state()
    assert all(name in text for (name,) in sql(saved, "SELECT name FROM blobs"))


def test_equal_tensors_are_stored_once(tmp_path: Path) -> None:
    """One adapter with nine names: the server's, a client's, three of its best round of either kind; and no memory."""
    adapter = {"w": torch.ones(1)}
    best = Best(1, 2.0, adapter, dict(adapter), dict(adapter))
    private = begin({"A": ClientState(adapter)}, tmp_path)
    private.best_of("local")["A"] = private.best_of("server")["A"] = best
    save_progress(KEY, Progress(1, ServerState(dict(adapter))), private)
    assert sql(tmp_path, "SELECT name FROM blobs") == [(digest(adapter),)]


def test_what_a_full_disk_rolled_back_is_written_again(tmp_path: Path) -> None:
    """SQLite rolls the transaction back, also what was put before the disk was full."""
    blobs, small, large = Blobs(tmp_path), {"w": torch.ones(10)}, {"w": torch.ones(1_000_000)}
    blobs.put(small)
    pages = blobs._file.execute("PRAGMA page_count").fetchone()[0]
    blobs._file.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(QuorumError, match="free disk space"):
        blobs.put(large)
    blobs._file.execute("PRAGMA max_page_count = 1000000")
    name = blobs.put(small)
    blobs.commit("{}", [name])
    assert torch.equal(Blobs(tmp_path).get(name)["w"], small["w"])


def test_without_a_finished_round_there_is_no_checkpoint(tmp_path: Path) -> None:
    """Also in a training that was killed in its first round."""
    assert load_progress(tmp_path, KEY) is None
    Blobs(tmp_path).put({"w": torch.ones(1)})
    assert (tmp_path / FILE).is_file()
    assert load_progress(tmp_path, KEY) is None


OTHER = "UPDATE state SET content = json_set(content, '$.key', ?)"
WITHOUT = "UPDATE state SET content = json_remove(content, ?)"
DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a truncated blob": (lambda f: sql(f, "UPDATE blobs SET content = substr(content, 2)"), "missing or damaged"),
    "a missing blob": (lambda f: sql(f, "DELETE FROM blobs"), "missing or damaged"),
    "a header alone": (lambda f: (f / FILE).write_bytes((f / FILE).read_bytes()[:20]), "damaged"),
    "a truncated file": (lambda f: (f / FILE).write_bytes((f / FILE).read_bytes()[:5000]), "damaged"),
    "half a state": (lambda f: sql(f, "UPDATE state SET content = '{'"), "damaged"),
    "another order": (lambda f: sql(f, OTHER, "other"), "checkpoint of another order"),
    "no progress": (lambda f: sql(f, WITHOUT, "$.progress"), "damaged checkpoint .*progress"),
    "no private state": (lambda f: sql(f, WITHOUT, "$.private"), "damaged checkpoint .*private"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_one_line(saved: Path, damage: str) -> None:
    apply, what = DAMAGES[damage]
    apply(saved)
    with pytest.raises(QuorumError, match=rf"^.*{what}.*; delete .* and run again.*\Z"):
        load_progress(saved, KEY)


def test_a_folder_that_cannot_be_written_is_one_line(saved: Path, tmp_path: Path) -> None:
    progress, private = Progress(1, ServerState({})), begin({}, tmp_path / FILE)
    with pytest.raises(QuorumError, match="free disk space or check permissions"):
        save_progress(KEY, progress, private)


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
