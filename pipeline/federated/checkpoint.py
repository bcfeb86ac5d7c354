"""Checkpoints of a training: after every round, so that a killed one resumes with the same bits.

A folder a training, named by the hash of its order and data. Its blobs hold the tensors; a JSON text, committed with
them, names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.federated.algorithm import Sent, ServerState
from pipeline.federated.blobs import Blobs, Get, Put
from pipeline.federated.engine import Asked
from pipeline.federated.events import Event
from pipeline.federated.history import Round
from pipeline.federated.masks import flat, nested
from pipeline.federated.shelf import Shelf
from pipeline.federated.state import BESTS, STATES, Private, Progress


def save_progress(key: str, progress: Progress, private: Private) -> None:
    """Write a finished round to the clients' blobs; those that it no longer needs are removed."""
    blobs = private.blobs
    state = {"key": key, "progress": _of_progress(progress, blobs.put), "private": of_private(private)}
    blobs.commit(json.dumps(state), named(_tensors(state)))


def load_progress(folder: Path, key: str) -> tuple[Progress, Private] | None:
    """The last finished round, or None where there is none.

    Raises:
        QuorumError: the checkpoint is damaged or of another order.
    """
    blobs = Blobs(folder)
    text = blobs.state()
    if text is None:
        return None
    try:
        state = json.loads(text)
        if state["key"] != key:
            raise blobs.damaged("a checkpoint of another order")
        for name in named(_tensors(state)):
            blobs.check(name)
        return _to_progress(state["progress"], blobs.get), to_private(state["private"], blobs)
    except (KeyError, TypeError, ValueError) as error:
        raise blobs.damaged(f"damaged checkpoint ({error!r})") from None


def _of_progress(progress: Progress, put: Put) -> dict[str, Any]:
    return {
        "round": progress.round,
        "server": [put(progress.server.adapter), put(progress.server.memory)],
        "least": dict(progress.least),
        "stale": progress.stale,
        "history": [asdict(row) for row in progress.history],
        "events": [asdict(event) for event in progress.events],
        "asked": [
            [one.name, put(one.sent.adapter), put(one.sent.memory), one.version, one.at] for one in progress.asked
        ],
        "clock": progress.clock,
    }


def _to_progress(state: Mapping[str, Any], get: Get) -> Progress:
    return Progress(
        round=state["round"],
        server=ServerState(*map(get, state["server"])),
        least=state["least"],
        stale=state["stale"],
        history=tuple(Round(**row) for row in state["history"]),
        events=tuple(Event(**event) for event in state["events"]),
        asked=tuple(
            Asked(name, Sent(get(adapter), get(memory)), version, at)
            for name, adapter, memory, version, at in state["asked"]
        ),
        clock=state["clock"],
    )


def of_private(private: Private) -> dict[str, Any]:
    """What clients keep as records; their tensors are in blobs after it."""
    return {
        "states": {name: private.states.record(name) for name in private.states},
        "best": {owner: {name: kept.record(name) for name in kept} for owner, kept in private.best.items()},
        "masks": private.blobs.put(flat(private.masks)),
    }


def to_private(state: Mapping[str, Any], blobs: Blobs) -> Private:
    best = {owner: Shelf(blobs, BESTS, records) for owner, records in state["best"].items()}
    return Private(blobs, Shelf(blobs, STATES, state["states"]), best, nested(blobs.get(state["masks"])))


def _tensors(state: Mapping[str, Any]) -> Any:
    return [state["progress"]["server"], state["progress"]["asked"], state["private"]]


def named(records: Any) -> set[str]:
    """Every blob that records name, by its checksum."""
    words = set(json.dumps(records).split('"'))
    return {word for word in words if len(word) == 64 and not word.strip("0123456789abcdef")}
