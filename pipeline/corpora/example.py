"""What every stage needs to know of an example, and its file: a record a line, of the kind that its task reads.

Only the data sets that a plan names are read, and not those of other plans in the same folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pipeline.errors import QuorumError
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_jsonl
from pipeline.workspace.record import Json

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


def examples_of(data: Iterable[str], kind: type[Any]) -> Json:
    """All examples of some data sets, by id.

    Args:
        kind: the record that their task reads.

    Raises:
        QuorumError: one is not prepared.
    """
    files = [read_examples(layout.examples(name), kind) for name in data]
    return {identity: example for examples in files for identity, example in examples.items()}


def is_sample(notes: Json) -> bool:
    """Whether the sample was read instead of a source, by a data set's notes."""
    return bool(notes["source"]["source"] == "sample")


def sampled(data: Iterable[str]) -> set[str]:
    """The data sets of which only the sample was available. Results on the sample mean nothing."""
    return {name for name in data if is_sample(read_json(layout.notes(name)))}
