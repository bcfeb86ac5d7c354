"""Safetensors files of a training, its adapters and masks, read without the seconds that importing torch takes.

A training saves the sha256 of each of its files in one file of the run's folder. A file that has changed since is not
used. Files of a folder without checksums are read unchecked.
"""

import hashlib
import json
import math
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.workspace import layout
from pipeline.workspace.files import canonical, read_json, sha256_file, write_json

LENGTH_BYTES = 8  # at a file's start, the length of its header in bytes, least significant byte first


def digest_of_tensors(path: Path) -> str:
    """sha256 of a file's tensors: of their names, types, shapes and bytes, but not of the file's metadata.

    Raises QuorumError if the file is missing, damaged or changed.
    """
    content = tensor_bytes(path)
    end = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    try:
        header = json.loads(content[LENGTH_BYTES:end])
    except ValueError as error:
        raise damaged(path, str(error)) from None
    header.pop("__metadata__", None)
    return hashlib.sha256(canonical(header).encode() + content[end:]).hexdigest()


def count_of_tensors(path: Path) -> int:
    """The number of elements of a file's tensors, from its header."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(LENGTH_BYTES), "little")))
    return sum(math.prod(about["shape"]) for name, about in header.items() if name != "__metadata__")


def tensor_bytes(path: Path) -> bytes:
    """The bytes of an adapter's or a mask's file, checked against the sha256 that its training saved.

    Raises QuorumError if the file is missing or changed.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise QuorumError(f"{path}: no such adapter; run `dvc repro` or correct the run's or client's name") from None
    run = layout.run_of(path)
    saved = _checksums(run).get(_name(path, run)) if run else None
    if saved not in (None, hashlib.sha256(content).hexdigest()):
        raise damaged(path, f"its sha256 is not the one in {layout.checksums(run or '')}")
    return content


def save_checksums(run: str) -> None:
    """Save the sha256 of every safetensors file of a run; the last step of its training's export."""
    files = sorted((layout.MODELS / run).rglob("*.safetensors"))
    write_json(layout.checksums(run), {_name(path, run): sha256_file(path) for path in files})


def is_intact(run: str) -> bool:
    """Whether all files are there and unchanged of which a training saved the sha256."""
    files = {layout.MODELS / run / name: saved for name, saved in _checksums(run).items()}
    return all(path.is_file() and sha256_file(path) == saved for path, saved in files.items())


def has_checksum(run: str, path: Path) -> bool:
    """Whether a training saved the sha256 of a file, which may be gone."""
    return _name(path, run) in _checksums(run)


def _checksums(run: str) -> dict[str, str]:
    """The path below the run's folder -> sha256; empty where a training saved none."""
    path = layout.checksums(run)
    saved: dict[str, str] = read_json(path, remedy=_remedy(run)) if path.is_file() else {}
    return saved


def _name(path: Path, run: str) -> str:
    return path.relative_to(layout.MODELS / run).as_posix()


def damaged(path: Path, reason: str) -> QuorumError:
    """The error for an adapter's file that cannot be used."""
    run = layout.run_of(path)
    return QuorumError(f"{path}: damaged adapter ({reason}); {_remedy(run) if run else 'run what wrote it again'}")


def _remedy(run: str) -> str:
    """How to train a run again, as the end of an error."""
    return f"run `dvc repro train@{run.rpartition('/')[0]}`"
