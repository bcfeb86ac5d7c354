"""The record that every corpus is turned into, and every later stage reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pipeline.errors import QuorumError
from pipeline.workspace.files import read_jsonl

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


@dataclass(frozen=True)
class Turn:
    """One turn of a meeting: who spoke, and the words."""

    speaker: str
    text: str


@dataclass(frozen=True)
class Example:
    """One query on one meeting, with the turns that answer it and the reference summary."""

    id: str
    corpus: str
    domain: str
    split: Split
    meeting: str
    query: str
    turns: tuple[Turn, ...]
    target: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Example:
        turns = tuple(Turn(**turn) for turn in row["turns"])
        return cls(**{**row, "turns": turns})


def read_examples(path: Path) -> dict[str, Example]:
    """Prepared examples by id.

    Raises:
        QuorumError: the file is missing, or a line is not an example.
    """
    examples = {}
    for number, row in enumerate(read_jsonl(path), 1):
        try:
            example = Example.from_json(row)
        except (TypeError, KeyError) as error:
            raise QuorumError(f"{path}: line {number}: not an example ({error}); run `dvc repro prepare`") from None
        examples[example.id] = example
    return examples
