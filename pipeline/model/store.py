"""The frozen-prefix store: the frozen backbone's outputs for an example, computed once and cached on disk.

It is content-addressed, with one file an example: the key hashes the backbone, the code that encodes, the layers, the
precision and the token ids. Another run, method, seed or limit finds existing entries and computes only new ones. Each
file has the checksum of its tensors in its metadata.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.model.backbone import Prefix, Rendered
from pipeline.model.entry import entry_file
from pipeline.workspace.files import canonical, sha256_json, write_bytes
from pipeline.workspace.record import Json

FORMAT = 5  # one more for every change of how entries lie on disk
REMEDY = (
    "run `dvc repro --force --single-item encode`, which computes what is missing of training and validation, or, of a "
    "test set, the run's predict stage"
)


def entry_key(backbone_digest: str, read_by: Json, rendered: Rendered) -> str:
    """The name of an entry: a hash of everything that its tensors depend on.

    `read_by`: the code that encodes, the layers, the precision.
    """
    about = {"format": FORMAT, "backbone": backbone_digest, "read_by": dict(read_by)}
    return sha256_json(about | {"source": rendered.source, "target": rendered.target, "places": rendered.places})


class PrefixStore:
    """Entries below one folder: what a loss needs. The further tensors of decoding are too large to be stored.

    Args:
        device: where entries are loaded to; None: the CPU.
        cache_bytes: at most so many bytes of entries stay in memory, those that are read first: opening the file of a
            short text takes longer than reading it.
    """

    def __init__(self, folder: Path, device: torch.device | None = None, cache_bytes: int = 0) -> None:
        self.folder = folder
        self._device, self._room = device or torch.device("cpu"), cache_bytes
        self._cached: dict[str, Prefix] = {}
        self._verified: set[Path] = set()

    def has(self, key: str) -> bool:
        """Whether an entry exists and has this key; a damaged one counts as missing, and is computed again."""
        try:
            return _about(entry_file(self.folder, key)).get("key") == key
        except (SafetensorError, OSError, json.JSONDecodeError):
            return False

    def put(self, key: str, prefix: Prefix) -> None:
        """Save an example's entry."""
        about = canonical({"key": key, "checksum": _checksum(prefix)})
        write_bytes(
            entry_file(self.folder, key), save({name: t.contiguous() for name, t in prefix.items()}, {"quorum": about})
        )

    def training(self, keys: Sequence[str]) -> list[Prefix]:
        """What a loss needs of each example. Raises QuorumError if an entry is missing, damaged, or of another key."""
        return [self._cached.get(key) or self._load(key) for key in keys]

    def _load(self, key: str) -> Prefix:
        """Read an entry to the device, and cache it while there is room."""
        prefix = {
            name: tensor.to(self._device) for name, tensor in self._read(entry_file(self.folder, key), key).items()
        }
        size = sum(tensor.nbytes for tensor in prefix.values())
        if size <= self._room:
            self._room -= size
            # Copies: the tensors may be views of a mapped file.
            self._cached[key] = prefix = {name: tensor.clone() for name, tensor in prefix.items()}
        return prefix

    def _read(self, path: Path, key: str) -> Prefix:
        if not path.is_file():
            raise QuorumError(f"{path}: is missing from the prefix store; {REMEDY}")
        try:
            # Mapped, not read: processes share the kernel's copy, and new memory would cost more time than the disk.
            with safe_open(str(path), framework="pt") as entry:
                tensors = {name: entry.get_tensor(name) for name in entry.keys()}  # noqa: SIM118  # not a dict
            if path in self._verified:
                return tensors
            about = _about(path)
        except (SafetensorError, json.JSONDecodeError) as error:
            raise self._damaged(path, str(error)) from None
        if about.get("key") != key:
            raise self._damaged(path, f"it belongs to another order, {about.get('key')!r}")
        if about.get("checksum") != _checksum(tensors):
            raise self._damaged(path, "its checksum does not match")
        self._verified.add(path)
        return tensors

    def _damaged(self, path: Path, reason: str) -> QuorumError:
        """Remove a damaged entry, so that it is computed again; the error to raise."""
        path.unlink(missing_ok=True)
        return QuorumError(f"{path}: damaged ({reason}), so it was removed; {REMEDY}")


def _about(path: Path) -> dict[str, str]:
    """An entry's metadata: its key and the checksum of its tensors."""
    with safe_open(str(path), framework="pt") as entry:
        metadata = entry.metadata() or {}
    about: dict[str, str] = json.loads(metadata.get("quorum", "{}"))
    return about


def _checksum(tensors: Prefix) -> str:
    """sha256 of tensors' names, shapes, types and bytes, in the names' order."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor: Tensor = tensors[name].contiguous()
        total.update(f"{name} {tuple(tensor.shape)} {tensor.dtype};".encode())
        total.update(tensor.view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return total.hexdigest()
