"""Where a training keeps its tensors: one SQLite file, in which a round counts once it is committed, and never half.

A blob is named by the checksum of its content, so what several clients or rounds share is kept once. Whatever was put
since the last commit is gone if the process dies. SQLite flushes content and journal before a commit counts (its
`synchronous` is FULL). It leaves the journal's removal to the disk's own time, so that a power cut may bring the round
before back, whole: it is trained again with the same bits. A node, which has answered by then, flushes that as well.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.model.adapter import pack, unpack

Put = Callable[[Mapping[str, Tensor]], str]
Get = Callable[[str], dict[str, Tensor]]
"""Tensors -> the name of their blob, and back."""

FILE = "checkpoint.sqlite"
RECENT = 4
"""So many tensors are recognized without being packed again: one server's adapter is what every client was sent."""


class Blobs:
    """Those of one folder, which is made with the first of them.

    Every method raises QuorumError where the file is damaged or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._recent: deque[tuple[Mapping[str, Tensor], str]] = deque(maxlen=RECENT)

    def put(self, tensors: Mapping[str, Tensor]) -> str:
        """Write them where they are not there yet; returns their name, which is empty where there are none."""
        if not tensors:
            return ""
        for known, name in self._recent:
            if known is tensors:
                return name
        content = pack(tensors)
        name = sys.intern(hashlib.sha256(content).hexdigest())  # what many clients share is named once
        with self._failures():
            self._file.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (name, content))
        self._recent.append((tensors, name))
        return name

    def get(self, name: str) -> dict[str, Tensor]:
        return unpack(self._checked(name)) if name else {}

    def check(self, name: str) -> None:
        """Whether a blob is there, and whole."""
        self._checked(name)

    def commit(self, state: str, names: Collection[str]) -> None:
        """A finished round: its state, and the blobs that it names; all others are removed."""
        with self._failures():
            known = {name for (name,) in self._file.execute("SELECT name FROM blobs")}
            self._file.executemany("DELETE FROM blobs WHERE name = ?", [(name,) for name in known - set(names)])
            self._file.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (state,))
            self._file.commit()
        self._recent.clear()

    def state(self) -> str | None:
        """That of the last commit."""
        if not self._path.is_file():
            return None
        with self._failures():
            row = self._file.execute("SELECT content FROM state").fetchone()
        return row[0] if row else None

    def damaged(self, why: str) -> QuorumError:
        """What a checkpoint that cannot be gone on with is told as."""
        return QuorumError(f"{self._path}: {why}; delete {self._path.parent} and run again", code="damaged")

    def _checked(self, name: str) -> bytes:
        with self._failures():
            row = self._file.execute("SELECT content FROM blobs WHERE name = ?", (name,)).fetchone()
        content: bytes = row[0] if row else b""
        if hashlib.sha256(content).hexdigest() != name:
            raise self.damaged("missing or damaged checkpoint")
        return content

    @cached_property
    def _file(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # A node answers in whichever thread a question came by, one at a time.
        file = sqlite3.connect(self._path, check_same_thread=False)
        # The largest there are: removing a blob reads every page of it.
        file.execute("PRAGMA page_size = 65536")
        file.execute("CREATE TABLE IF NOT EXISTS blobs (name TEXT PRIMARY KEY, content BLOB)")
        file.execute("CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY, content TEXT)")
        return file

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            self._forget_uncommitted()
            raise QuorumError(
                f"{self._path}: could not be read or written ({error}); free disk space or check permissions, "
                "then run the same command again",
                code="disk",
            ) from None
        except sqlite3.DatabaseError as error:
            raise self.damaged(f"damaged checkpoint ({error})") from None

    def _forget_uncommitted(self) -> None:
        """What was put since the last commit: SQLite may have taken it back already, and nobody may rely on it."""
        self._recent.clear()
        if (file := vars(self).get("_file")) is not None:
            with suppress(sqlite3.Error):
                file.rollback()
