"""What every stage needs to know of an example, and its file: a record a line, of the kind that its task reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pipeline.errors import QuorumError
from pipeline.workspace.files import read_jsonl, write_jsonl

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


CLOSED = ConfigDict(extra="forbid")
"""Of a kind of record: a line with another field is none of its kind."""


class Example(Protocol):
    """The fields of every kind of record.

    Attributes:
        owner: the natural client.
        group: examples of one group (a meeting, a thread, a document) are not independent.
        label: partitions are skewed by it.
        text: what a task reads, without its label, tags, answers, title or summary.
    """

    @property
    def id(self) -> str: ...

    @property
    def split(self) -> Split: ...

    @property
    def owner(self) -> str: ...

    @property
    def group(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def text(self) -> str: ...


def write_examples(path: Path, examples: Iterable[Any]) -> None:
    """Write dataclasses, one a line."""
    write_jsonl(path, (asdict(example) for example in examples))


def read_examples(path: Path, kind: type[Any]) -> dict[str, Any]:
    """Read examples by id.

    Args:
        kind: the dataclass of a line.

    Raises:
        QuorumError: the file is missing, or a line is no record of this kind.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    examples: dict[str, Any] = {}
    for number, row in enumerate(read_jsonl(path), 1):
        try:
            example = adapter.validate_python(row)
        except ValidationError as error:
            first = error.errors()[0]
            what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise QuorumError(f"{path}: line {number}: no {kind.__name__} ({what}); run `dvc repro prepare`") from None
        examples[example.id] = example
    return examples
