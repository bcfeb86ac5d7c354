"""Checkpoints of a training: after every round, so that a killed one resumes with the same bits.

A folder a training, named by the hash of its spec and data. Tensors lie in files named by their own checksum, so what
several rounds share is kept once; `state.json` names them and is renamed into place last: a round counts once it is
there, and never half.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientState, Kind, ServerState
from pipeline.federated.loop import Best, Progress
from pipeline.model.adapter import pack, unpack
from pipeline.workspace.files import read_json, write_bytes, write_json

STATE = "state.json"


def save_progress(folder: Path, key: str, progress: Progress) -> None:
    """Write a finished round; blobs that it no longer needs are removed afterwards."""
    state = _flatten(folder, progress)
    write_json(folder / STATE, {"key": key, **state})
    named = set(_digests(state))
    for blob in folder.glob("*.safetensors"):
        if blob.stem not in named:
            blob.unlink()


def load_progress(folder: Path, key: str) -> Progress | None:
    """The last finished round, or None where there is none.

    Raises:
        QuorumError: the checkpoint is damaged or of another spec.
    """
    path = folder / STATE
    if not path.is_file():
        return None
    state = read_json(path, remedy=f"delete {folder} and run again")
    if state.get("key") != key:
        raise QuorumError(f"{path}: a checkpoint of another spec; delete {folder} and run again")
    try:
        return _unflatten(folder, state)
    except (KeyError, TypeError, ValueError) as error:
        raise QuorumError(f"{path}: damaged checkpoint ({error!r}); delete {folder} and run again") from None


def _flatten(folder: Path, progress: Progress) -> dict[str, Any]:
    names: dict[int, str] = {}

    def put(tensors: Mapping[str, Tensor]) -> str:
        # One server's adapter is every client's teacher: packed and hashed once.
        if id(tensors) not in names:
            content = pack(tensors)
            names[id(tensors)] = hashlib.sha256(content).hexdigest()
            path = folder / f"{names[id(tensors)]}.safetensors"
            if not path.is_file():
                write_bytes(path, content)
        return names[id(tensors)]

    bits = {f"{name}/{i}": row for name, rows in progress.distilled.items() for i, row in enumerate(rows)}
    return {
        "round": progress.round,
        "stale": progress.stale,
        "history": progress.history,
        "server": [put(progress.server.adapter), put(progress.server.memory)],
        "clients": {name: [put(state.adapter), put(state.memory)] for name, state in progress.clients.items()},
        "best": {
            kind: {
                name: {"round": b.round, "loss": b.loss, "adapter": put(b.adapter), "teacher": put(b.teacher)}
                for name, b in kept.items()
            }
            for kind, kept in progress.best.items()
        },
        "distilled": {"clients": {n: len(rows) for n, rows in progress.distilled.items()}, "blob": put(bits)},
    }


def _unflatten(folder: Path, state: dict[str, Any]) -> Progress:
    loaded: dict[str, dict[str, Tensor]] = {}

    def get(name: str) -> dict[str, Tensor]:
        if name not in loaded:
            path = folder / f"{name}.safetensors"
            content = path.read_bytes() if path.is_file() else b""
            if hashlib.sha256(content).hexdigest() != name:
                raise QuorumError(f"{path}: missing or damaged checkpoint; delete {folder} and run again")
            loaded[name] = unpack(content)
        return loaded[name]

    bits = get(state["distilled"]["blob"])
    distilled: dict[str, list[Tensor]] = {
        name: [bits[f"{name}/{i}"] for i in range(rounds)] for name, rounds in state["distilled"]["clients"].items()
    }
    best: dict[Kind, dict[str, Best]] = {
        kind: {name: Best(b["round"], b["loss"], get(b["adapter"]), get(b["teacher"])) for name, b in kept.items()}
        for kind, kept in state["best"].items()
    }
    return Progress(
        round=state["round"],
        server=ServerState(*(get(name) for name in state["server"])),
        clients={name: ClientState(*(get(b) for b in blobs)) for name, blobs in state["clients"].items()},
        best=best,
        stale=state["stale"],
        history=state["history"],
        distilled=distilled,
    )


def _digests(state: Mapping[str, Any]) -> list[str]:
    """Every checksum that a state names."""
    text = json.dumps(state)
    return [word for word in text.split('"') if len(word) == 64 and not word.strip("0123456789abcdef")]
