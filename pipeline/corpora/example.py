"""What every stage needs to know of an example, and its file: a record a line, of the kind that its task reads."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from pipeline.errors import QuorumError
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_jsonl
from pipeline.workspace.record import Json, first_problem

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
FOLDERS: dict[Split, str] = {"train": "train", "val": "dev", "test": "test"}
"""Split -> its folder, in many corpora."""
CLOSED = ConfigDict(extra="forbid")  # of a kind of record: a line with another field is none of its kind


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


Kind = TypeVar("Kind", bound=Example)


def write_examples(path: Path, examples: Iterable[Any]) -> None:
    """Write dataclasses, one a line."""
    write_jsonl(path, (asdict(example) for example in examples))


def examples_of(data: Iterable[str], kind: type[Kind]) -> dict[str, Kind]:
    """All examples of some data sets, by id; `kind` is the dataclass that their task reads.

    Raises QuorumError if one is not prepared, or a line is no record of this kind.
    """
    adapter, examples = TypeAdapter(kind), {}
    for path in map(layout.examples, data):
        for number, row in enumerate(read_jsonl(path), 1):
            try:
                example = adapter.validate_python(row)
            except ValidationError as error:
                wrong = f"no {kind.__name__} ({first_problem(error)})"
                raise QuorumError(f"{path}: line {number}: {wrong}; run `dvc repro prepare`") from None
            examples[example.id] = example
    return examples


def is_sample(source: Json) -> bool:
    """Whether the sample was read instead of a published source, by what notes and results say of the source."""
    return bool(source["source"] == "sample")


def sampled(data: Iterable[str]) -> set[str]:
    """The data sets of which only the sample was available. Results on the sample mean nothing."""
    return {name for name in data if is_sample(read_json(layout.notes(name))["source"])}
