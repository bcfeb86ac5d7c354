"""Checkpoints of a training after every round, so that a killed training resumes with the same bits.

A training has a folder, named by the hash of its order and data. Its tensors are blobs; a JSON text, committed in the
same transaction, refers to them by name.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from pipeline.federated.algorithm import ClientState, Sent, ServerState
from pipeline.federated.blobs import Blobs
from pipeline.federated.client_store import ClientStore
from pipeline.federated.engine import Assignment, Event
from pipeline.federated.history import Round
from pipeline.federated.state import Best, Private, Progress
from pipeline.workspace.record import Json

_CHECKSUM = re.compile("[0-9a-f]{64}")


def save_progress(key: str, progress: Progress, private: Private) -> None:
    """Save a finished round to the clients' blobs, and remove blobs that are no longer needed."""
    record = private.blobs.record
    pending = [vars(one) | {"sent": record(one.sent)} for one in progress.pending]
    tensors = {"server": record(progress.server), "pending": pending}
    rows = {name: [asdict(row) for row in getattr(progress, name)] for name in ("history", "events")}
    own = private_record(private)
    state = json.dumps({"key": key, "progress": vars(progress) | rows | tensors, "private": own})
    private.blobs.commit(state, blob_names([tensors, own]))


def load_progress(folder: Path, key: str) -> tuple[Progress, Private] | None:
    """Load the last finished round; None if there is none.

    Raises QuorumError if the checkpoint is damaged or of another order.
    """
    blobs = Blobs(folder)
    if (text := blobs.state()) is None:
        return None
    try:
        state = json.loads(text)
        if state["key"] != key:
            raise blobs.damaged("a checkpoint of another order")
        saved: Json = state["progress"]
        for name in blob_names([saved["server"], saved["pending"], state["private"]]):
            blobs.read(name)
        parts = {
            "server": blobs.value(ServerState, saved["server"]),
            "history": tuple(Round(**row) for row in saved["history"]),
            "events": tuple(Event(**event) for event in saved["events"]),
            "pending": tuple(Assignment(**one | {"sent": blobs.value(Sent, one["sent"])}) for one in saved["pending"]),
        }
        return Progress(**saved | parts), private_from(state["private"], blobs)
    except (KeyError, TypeError, ValueError) as error:
        raise blobs.damaged(f"damaged checkpoint ({error!r})") from None


def private_record(private: Private) -> Json:
    """What clients store now, as a JSON record."""
    return {
        "states": dict(private.states.records),
        "best": {owner: dict(best.records) for owner, best in private.best.items()},
        "masks": private.blobs.put(dict(private.masks)),
    }


def private_from(state: Json, blobs: Blobs) -> Private:
    """What clients store, from the record that `private_record` returned."""
    best = {owner: ClientStore(blobs, Best, records) for owner, records in state["best"].items()}
    return Private(blobs, ClientStore(blobs, ClientState, state["states"]), best, blobs.get(state["masks"]))


def blob_names(records: object) -> set[str]:
    """The names (checksums) of all blobs that records refer to."""
    if isinstance(records, str):
        return {records} if _CHECKSUM.fullmatch(records) else set()
    if isinstance(records, Mapping):
        return blob_names(list(records.values()))
    return set().union(*map(blob_names, records)) if isinstance(records, list | tuple) else set()
