"""Storage for a training's tensors: one SQLite file, to which a round is committed completely or not at all.

A blob's name is the checksum of its content, so that tensors shared by clients or rounds are stored once. If the
process dies, what was put since the last commit is lost. SQLite flushes content and journal before a commit counts
(`synchronous` is FULL) but does not flush the removal of the journal, so a power cut may restore the round before. It
is then trained again with the same bits. A node has answered the server by then, so it flushes the removal, too.
"""

import hashlib
import sqlite3
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.model.adapter import pack, unpack
from pipeline.workspace.record import Json

T = TypeVar("T")

FILE = "checkpoint.sqlite"
RECENT = 4
"""The number of records recognized without serializing them again: all clients were sent the same adapter."""


class Blobs:
    """The blobs of one folder, which is created with the first of them; without a folder, they are in memory.

    Every method raises QuorumError if the file is damaged or cannot be read or written.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / FILE if folder else Path(":memory:")
        self._recent: deque[tuple[Mapping[str, Tensor], str]] = deque(maxlen=RECENT)

    def __del__(self) -> None:
        if (file := vars(self).get("_file")) is not None:
            file.close()  # A connection refers to itself, so it would lock the file until garbage is collected.

    def put(self, tensors: Mapping[str, Tensor]) -> str:
        """Write tensors unless they exist already; returns their blob's name, which is empty for no tensors."""
        if not tensors:
            return ""
        for known, name in self._recent:
            if known is tensors:
                return name
        content = pack(tensors)
        name = sys.intern(hashlib.sha256(content).hexdigest())  # Many clients share a blob: one string for its name.
        with self._failures():
            self._file.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (name, content))
        self._recent.append((tensors, name))
        return name

    def record(self, value: object) -> Json:
        """A dataclass of numbers and dicts of tensors as a JSON object: a blob's name for each dict, which is put."""
        return {key: self.put(own) if isinstance(own, Mapping) else own for key, own in vars(value).items()}

    def value(self, kind: type[T], record: Json) -> T:
        """The dataclass whose record this is."""
        return kind(**{key: self.get(own) if isinstance(own, str) else own for key, own in record.items()})

    def get(self, name: str) -> dict[str, Tensor]:
        """Read a blob's tensors, by name; none for the empty name."""
        return unpack(self.read(name)) if name else {}

    def read(self, name: str) -> bytes:
        """Read a blob, and check that it is not damaged."""
        with self._failures():
            row = self._file.execute("SELECT content FROM blobs WHERE name = ?", (name,)).fetchone()
        content: bytes = row[0] if row else b""
        if hashlib.sha256(content).hexdigest() != name:
            raise self.damaged("missing or damaged checkpoint")
        return content

    def commit(self, state: str, names: Collection[str]) -> None:
        """Commit a finished round: its state, and the blobs of these names. All other blobs are removed."""
        with self._failures():
            known = {name for (name,) in self._file.execute("SELECT name FROM blobs")}
            self._file.executemany("DELETE FROM blobs WHERE name = ?", [(name,) for name in known - set(names)])
            self._file.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (state,))
            self._file.commit()
        self._recent.clear()

    def state(self) -> str | None:
        """The state of the last commit; None if there is none."""
        if not self._path.is_file():
            return None
        with self._failures():
            row = self._file.execute("SELECT content FROM state").fetchone()
        return row[0] if row else None

    def damaged(self, why: str) -> QuorumError:
        """The error for a checkpoint that cannot be resumed."""
        return QuorumError(f"{self._path}: {why}; delete {self._path.parent} and run again", code="damaged")

    @cached_property
    def _file(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(self._path, check_same_thread=False)  # A node answers in several threads, one at a time.
        file.execute("PRAGMA page_size = 65536")  # The largest size: removing a blob reads each of its pages.
        file.execute("CREATE TABLE IF NOT EXISTS blobs (name TEXT PRIMARY KEY, content BLOB)")
        file.execute("CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY, content TEXT)")
        return file

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            # Roll back what was put since the last commit; SQLite may have done so already.
            self._recent.clear()
            if (file := vars(self).get("_file")) is not None:
                with suppress(sqlite3.Error):
                    file.rollback()
            raise QuorumError(
                f"{self._path}: could not be read or written ({error}); free disk space or check permissions, "
                "then run the same command again",
                code="disk",
            ) from None
        except sqlite3.DatabaseError as error:
            raise self.damaged(f"damaged checkpoint ({error})") from None
