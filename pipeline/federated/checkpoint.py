"""Checkpoints of a training after every round, so that a killed training resumes with the same bits.

A training has a folder, named by the hash of its order and data. Its tensors are blobs; a JSON text, committed in the
same transaction, refers to them by name.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from pipeline.federated.algorithm import ClientState, Sent, ServerState
from pipeline.federated.blobs import Blobs
from pipeline.federated.client_store import ClientStore
from pipeline.federated.engine import Assignment
from pipeline.federated.events import Event
from pipeline.federated.history import Round
from pipeline.federated.state import Best, Private, Progress
from pipeline.workspace.record import Json


def save_progress(key: str, progress: Progress, private: Private) -> None:
    """Save a finished round to the clients' blobs, and remove blobs that are no longer needed."""
    put = private.blobs.put
    pending = [[one.name, put(one.sent.adapter), put(one.sent.memory), one.version, one.at] for one in progress.pending]
    state = {
        "key": key,
        "round": progress.round,
        "server": [put(progress.server.adapter), put(progress.server.memory)],
        "least": dict(progress.least),
        "stale": progress.stale,
        "history": [asdict(row) for row in progress.history],
        "events": [asdict(event) for event in progress.events],
        "pending": pending,
        "clock": progress.clock,
        "private": private_record(private),
    }
    private.blobs.commit(json.dumps(state), _blobs_of(state))


def load_progress(folder: Path, key: str) -> tuple[Progress, Private] | None:
    """Load the last finished round; None if there is none.

    Raises:
        QuorumError: the checkpoint is damaged or of another order.
    """
    blobs = Blobs(folder)
    if (text := blobs.state()) is None:
        return None
    try:
        state = json.loads(text)
        if state["key"] != key:
            raise blobs.damaged("a checkpoint of another order")
        for name in _blobs_of(state):
            blobs.read(name)
        return _progress_from(state, blobs), private_from(state["private"], blobs)
    except (KeyError, TypeError, ValueError) as error:
        raise blobs.damaged(f"damaged checkpoint ({error!r})") from None


def _progress_from(state: Json, blobs: Blobs) -> Progress:
    get = blobs.get
    adapter, memory = map(get, state["server"])
    return Progress(
        round=state["round"],
        server=ServerState(adapter, memory),
        least=state["least"],
        stale=state["stale"],
        history=tuple(Round(**row) for row in state["history"]),
        events=tuple(Event(**event) for event in state["events"]),
        pending=tuple(
            Assignment(name, Sent(get(adapter), get(memory)), version, at)
            for name, adapter, memory, version, at in state["pending"]
        ),
        clock=state["clock"],
    )


def private_record(private: Private) -> Json:
    """What clients store as a JSON record; writes their tensors to blobs."""
    return {
        "states": {name: private.states.record(name) for name in private.states},
        "best": {owner: {name: best.record(name) for name in best} for owner, best in private.best.items()},
        "masks": private.blobs.put(dict(private.masks)),
    }


def private_from(state: Json, blobs: Blobs) -> Private:
    """What clients store, from the record that `private_record` returned."""
    best = {owner: ClientStore(blobs, Best, records) for owner, records in state["best"].items()}
    return Private(blobs, ClientStore(blobs, ClientState, state["states"]), best, blobs.get(state["masks"]))


def _blobs_of(state: Json) -> set[str]:
    return blob_names([state["server"], state["pending"], state["private"]])


def blob_names(records: object) -> set[str]:
    """The names (checksums) of all blobs that records refer to."""
    words = set(json.dumps(records).split('"'))
    return {word for word in words if len(word) == 64 and not word.strip("0123456789abcdef")}
