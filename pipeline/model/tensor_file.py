"""What a safetensors file holds, without the seconds that torch takes to be imported."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.workspace.files import canonical

HEAD = 8
"""Bytes that say how long the header is, least significant first."""


def digest_of_tensors(path: Path) -> str:
    """sha256 of a file's tensors: names, types, shapes and bytes; what is noted about them does not count.

    Raises:
        QuorumError: the file is missing or damaged.
    """
    content = adapter_bytes(path)
    end = HEAD + int.from_bytes(content[:HEAD], "little")
    try:
        header = json.loads(content[HEAD:end])
    except ValueError as error:
        raise damaged(path, error) from None
    header.pop("__metadata__", None)
    return hashlib.sha256(canonical(header).encode() + content[end:]).hexdigest()


def adapter_bytes(path: Path) -> bytes:
    """An adapter's file.

    Raises:
        QuorumError: it is missing.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise QuorumError(f"{path}: no such adapter; run `dvc repro` or correct the run's or client's name") from None


def damaged(path: Path, error: Exception) -> QuorumError:
    """What an adapter's file that cannot be read is told as."""
    return QuorumError(f"{path}: damaged adapter ({error}); run `dvc repro --force` on the stage that writes it")
