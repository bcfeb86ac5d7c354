"""Atomic, durable writes and checked reads of small files.

A file is written under a temporary name and renamed, so a killed program leaves no half-written file. After a power cut
only flushed content and names are left, so every write flushes the content before the rename and the folder after it.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pipeline.errors import QuorumError


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and flush their names."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    flush(folder.parent)


def empty_folder(folder: Path) -> None:
    """Make an empty folder, or empty it: DVC expects a stage's output even if there are no runs."""
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)


def flush(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """Wait until a folder that a library wrote is on the disk with all files below it."""
    for path in [*folder.rglob("*"), folder, folder.parent]:
        flush(path)


def copy_tree(folder: Path, into: Path) -> None:
    """Copy a folder's files, each as `replacing` writes one."""
    make_folder(into)
    for above, _, names in os.walk(folder, followlinks=True):
        for path in (Path(above, name) for name in names):
            with replacing(into / path.relative_to(folder)) as temporary:
                shutil.copyfile(path, temporary)


def link(source: Path | str, target: Path | str) -> None:
    """Hard-link a file where the disk can, else copy it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
        flush(Path(target))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it to `path` if the block succeeds.

    Its name depends on `path` only: a killed process's temporary is overwritten, and a second writer waits.

    Raises QuorumError if the disk is full or the folder cannot be written; `path` is then untouched.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    begun = False
    try:
        make_folder(path.parent)
        with _file_lock(temporary):
            begun = True
            try:
                yield temporary
                umask = os.umask(0)
                os.umask(umask)
                temporary.chmod(0o666 & ~umask)
                flush(temporary)
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            flush(path.parent)
    except OSError as error:
        if error.filename is not None and begun and Path(error.filename).parent != path.parent:
            raise  # the block failed to read something
        remedy = "free disk space or check permissions, then run the same command again"
        raise QuorumError(f"{path}: could not be written ({error.strerror or error}); {remedy}") from error


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Lock an empty file, which is made if it is missing. Other writers wait."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(path, handle):  # else the lock's last owner has renamed or removed the file
                os.ftruncate(handle, 0)
                yield
                return
        finally:
            os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(handle))
    return False


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock `path`, an empty file for this purpose; unless this waits for others, yield whether it is locked now."""
    make_folder(path.parent)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def is_locked(path: Path) -> bool:
    """Whether another process has locked `path`."""
    if not path.is_file():
        return False
    with locked(path, wait=False) as free:
        return not free


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file by these bytes, atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Replace a file by a text in UTF-8, atomically."""
    write_bytes(path, content.encode("utf-8"))


def write_json(path: Path, value: object) -> None:
    """Replace a file by a value as JSON, atomically."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_jsonl(path: Path, rows: Iterable[object]) -> None:
    """Replace a file by a line of JSON for each row, atomically."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_json(path: Path, remedy: str = "run `dvc repro`") -> Any:
    """Parse a JSON file; an error where it is missing, unreadable or not JSON."""
    return parse_json(_read_text(path, remedy), path, remedy)


def read_jsonl(path: Path, remedy: str = "run `dvc repro`") -> list[Any]:
    """Parse a JSON-lines file; an error where it is missing, or a line is not JSON."""
    text = _read_text(path, remedy)
    # Not splitlines: it would also cut at Unicode's line separators, which JSON need not escape.
    lines = text.removesuffix("\n").split("\n") if text else []
    return [parse_json(line, path, remedy, number) for number, line in enumerate(lines, 1)]


def parse_json(text: str, path: Path, remedy: str, line: int = 1) -> Any:
    """JSON that begins on a line of a file. Deep nesting and a number of thousands of digits are malformed, too."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        at, reason = (line + error.lineno - 1, error.msg) if isinstance(error, json.JSONDecodeError) else (line, error)
        raise QuorumError(f"{path}: line {at}: malformed JSON ({reason}); {remedy}") from None


def _read_text(path: Path, remedy: str) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; {remedy}") from None
    except OSError as error:
        raise QuorumError(f"{path}: could not be read ({error.strerror}); check its permissions") from None
    except UnicodeDecodeError as error:
        raise QuorumError(f"{path}: is not UTF-8 (byte {error.start}); {remedy}") from None


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def canonical(value: object) -> str:
    """One text for one value, for hashing."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_json(value: object) -> str:
    """The SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()
