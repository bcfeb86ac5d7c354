"""Records of four tasks: a text with its class, words with tags, a question with answers, a text with its title.

Each has a `split`; an `owner`, the natural client; a `group` of texts that are not independent (a thread, a document, a
paragraph); and a `label`, by which partitions are skewed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline.corpora.example import Split
from pipeline.errors import QuorumError
from pipeline.workspace.files import read_jsonl, write_jsonl


class Text(Protocol):
    """What partitions and evaluation need to know of a record."""

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


@dataclass(frozen=True)
class Labelled:
    """A text and its class."""

    id: str
    split: Split
    owner: str
    group: str
    text: str
    label: str


@dataclass(frozen=True)
class Tagged:
    """Words, each with a tag in BIO: `O`, `B-X` at the first word of an X, `I-X` at the others."""

    id: str
    split: Split
    owner: str
    group: str
    words: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def label(self) -> str:
        """The sentence's types, sorted and joined, as in FedNLP's code; `NULL` if it has none."""
        return "_".join(sorted({tag[2:] for tag in self.tags if tag != "O"})) or "NULL"


@dataclass(frozen=True)
class Question:
    """A question on a paragraph, and its answers, each with the character of the context at which it begins."""

    id: str
    split: Split
    owner: str
    group: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]

    @property
    def label(self) -> str:
        """The article."""
        return self.owner


@dataclass(frozen=True)
class Titled:
    """A text and its title, as one writer gave it; `others`: titles that annotators gave it."""

    id: str
    split: Split
    owner: str
    group: str
    text: str
    title: str
    others: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The owner: a title is no class."""
        return self.owner


AnyText = TypeVar("AnyText", Labelled, Tagged, Question, Titled)


def write_texts(path: Path, texts: Iterable[AnyText]) -> None:
    write_jsonl(path, (asdict(text) for text in texts))


def read_texts(path: Path, kind: type[AnyText]) -> dict[str, AnyText]:
    """Prepared texts by id.

    Raises:
        QuorumError: the file is missing, or a line is no record of this kind.
    """
    texts: dict[str, AnyText] = {}
    for number, row in enumerate(read_jsonl(path), 1):
        try:
            text = kind(**{name: _frozen(value) for name, value in row.items()})
        except TypeError as error:
            raise QuorumError(f"{path}: line {number}: not as planned ({error}); run `dvc repro prepare`") from None
        texts[text.id] = text
    return texts


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
