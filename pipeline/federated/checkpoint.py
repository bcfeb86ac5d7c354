"""Checkpoints of a training: after every round, so that a killed one resumes with the same bits.

A folder a training, named by the hash of its order and data. Tensors lie in files named by their own checksum, so what
several rounds share is kept once; `state.json` names them and is renamed into place last: a round counts once it is
there, and never half.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientState, Owner, ServerState
from pipeline.federated.history import Round
from pipeline.federated.masks import flat, nested
from pipeline.federated.state import Best, Private, Progress
from pipeline.model.adapter import pack, unpack
from pipeline.workspace.files import read_json, write_bytes, write_json

STATE = "state.json"
MODELS = ("adapter", "sent", "before")
"""The tensors of a client's best round."""

Put = Callable[[Mapping[str, Tensor]], str]
Get = Callable[[str], dict[str, Tensor]]
"""Tensors -> the name of their file, and back."""


def save_progress(folder: Path, key: str, progress: Progress, private: Private) -> None:
    """Write a finished round; blobs that it no longer needs are removed afterwards."""
    put = _writer(folder)
    state = {"key": key, "progress": _of_progress(progress, put), "private": _of_private(private, put)}
    write_json(folder / STATE, state)
    named = set(_digests(state))
    for blob in folder.glob("*.safetensors"):
        if blob.stem not in named:
            blob.unlink()


def load_progress(folder: Path, key: str) -> tuple[Progress, Private] | None:
    """The last finished round, or None where there is none.

    Raises:
        QuorumError: the checkpoint is damaged or of another order.
    """
    path = folder / STATE
    if not path.is_file():
        return None
    state = read_json(path, remedy=f"delete {folder} and run again")
    if state.get("key") != key:
        raise QuorumError(f"{path}: a checkpoint of another order; delete {folder} and run again")
    try:
        get = _reader(folder)
        return _to_progress(state["progress"], get), _to_private(state["private"], get)
    except (KeyError, TypeError, ValueError) as error:
        raise QuorumError(f"{path}: damaged checkpoint ({error!r}); delete {folder} and run again") from None


def _of_progress(progress: Progress, put: Put) -> dict[str, Any]:
    return {
        "round": progress.round,
        "server": [put(progress.server.adapter), put(progress.server.memory)],
        "least": dict(progress.least),
        "stale": progress.stale,
        "history": [asdict(row) for row in progress.history],
    }


def _to_progress(state: Mapping[str, Any], get: Get) -> Progress:
    return Progress(
        round=state["round"],
        server=ServerState(*map(get, state["server"])),
        least=state["least"],
        stale=state["stale"],
        history=tuple(Round(**row) for row in state["history"]),
    )


def _of_private(private: Private, put: Put) -> dict[str, Any]:
    return {
        "states": {name: [put(state.adapter), put(state.memory)] for name, state in private.states.items()},
        "best": {
            owner: {
                name: {"round": b.round, "loss": b.loss} | {model: put(getattr(b, model)) for model in MODELS}
                for name, b in kept.items()
            }
            for owner, kept in private.best.items()
        },
        "masks": put(flat(private.masks)),
    }


def _to_private(state: Mapping[str, Any], get: Get) -> Private:
    best: dict[Owner, dict[str, Best]] = {
        owner: {
            name: Best(b["round"], b["loss"], **{model: get(b[model]) for model in MODELS}) for name, b in kept.items()
        }
        for owner, kept in state["best"].items()
    }
    states = {name: ClientState(*map(get, blobs)) for name, blobs in state["states"].items()}
    return Private(states, best, nested(get(state["masks"])))


def _writer(folder: Path) -> Put:
    names: dict[int, str] = {}

    def put(tensors: Mapping[str, Tensor]) -> str:
        # One server's adapter is what every client was sent: packed and hashed once.
        if id(tensors) not in names:
            content = pack(tensors)
            names[id(tensors)] = hashlib.sha256(content).hexdigest()
            path = folder / f"{names[id(tensors)]}.safetensors"
            if not path.is_file():
                write_bytes(path, content)
        return names[id(tensors)]

    return put


def _reader(folder: Path) -> Get:
    loaded: dict[str, dict[str, Tensor]] = {}

    def get(name: str) -> dict[str, Tensor]:
        if name not in loaded:
            path = folder / f"{name}.safetensors"
            content = path.read_bytes() if path.is_file() else b""
            if hashlib.sha256(content).hexdigest() != name:
                raise QuorumError(f"{path}: missing or damaged checkpoint; delete {folder} and run again")
            loaded[name] = unpack(content)
        return loaded[name]

    return get


def _digests(state: Mapping[str, Any]) -> list[str]:
    """Every checksum that a state names."""
    text = json.dumps(state)
    return [word for word in text.split('"') if len(word) == 64 and not word.strip("0123456789abcdef")]
