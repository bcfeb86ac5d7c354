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
    try:
        content = path.read_bytes()
        end = HEAD + int.from_bytes(content[:HEAD], "little")
        header = json.loads(content[HEAD:end])
    except FileNotFoundError:
        raise QuorumError(f"{path}: no such adapter; run `dvc repro` or correct the run's or client's name") from None
    except ValueError as error:
        raise QuorumError(
            f"{path}: damaged adapter ({error}); run `dvc repro --force` on the stage that writes it"
        ) from None
    header.pop("__metadata__", None)
    return hashlib.sha256(canonical(header).encode() + content[end:]).hexdigest()
