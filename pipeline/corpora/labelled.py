"""Records of four tasks: a text with its class, words with tags, a question with answers, a text with its title."""

from dataclasses import dataclass

from pipeline.corpora.example import CLOSED, Split


@dataclass(frozen=True)
class _Owned:
    __pydantic_config__ = CLOSED

    id: str
    split: Split
    owner: str
    group: str


@dataclass(frozen=True)
class Labelled(_Owned):
    """A text and its class."""

    text: str
    label: str


@dataclass(frozen=True)
class Tagged(_Owned):
    """Words, each with a tag in BIO: `O`, `B-X` at the first word of an X, `I-X` at the others."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def label(self) -> str:
        """The sentence's types, sorted and joined, as in FedNLP's code; `NULL` if it has none."""
        return "_".join(sorted({tag[2:] for tag in self.tags if tag != "O"})) or "NULL"

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Question(_Owned):
    """A question on a paragraph, and its answers, each with the character of the context at which it begins."""

    question: str
    context: str
    answers: tuple[tuple[str, int], ...]

    @property
    def label(self) -> str:
        """The article."""
        return self.owner

    @property
    def text(self) -> str:
        return f"{self.question}\n{self.context}"


@dataclass(frozen=True)
class Titled(_Owned):
    """A text and its title, as one writer gave it; `others`: titles that annotators gave it."""

    text: str
    title: str
    others: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The owner: a title is no class."""
        return self.owner
