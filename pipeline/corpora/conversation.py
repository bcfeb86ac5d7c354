"""A query on a conversation, with the turns that answer it and the reference summary: the record of meeting corpora."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.corpora.example import CLOSED, Split


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation: who spoke, and the words."""

    __pydantic_config__ = CLOSED

    speaker: str
    text: str


@dataclass(frozen=True)
class Conversation:
    """One query on one meeting or dialogue; see `Example`.

    Its owner is the domain, and its group the meeting, whose queries are not independent.
    """

    __pydantic_config__ = CLOSED

    id: str
    corpus: str
    domain: str
    split: Split
    meeting: str
    query: str
    turns: tuple[Turn, ...]
    target: str

    @property
    def owner(self) -> str:
        return self.domain

    @property
    def group(self) -> str:
        return self.meeting

    @property
    def label(self) -> str:
        return self.domain

    @property
    def own(self) -> bool:
        """Whether it is of a user's meetings: their corpus has their client's name."""
        return self.corpus == self.domain

    @property
    def text(self) -> str:
        return "\n".join([self.query, *(f"{turn.speaker}: {turn.text}" for turn in self.turns)])


@dataclass(frozen=True)
class Dialogue:
    """A conversation with one summary and without a query, as a corpus publishes it."""

    name: str
    split: Split
    meeting: str
    turns: tuple[Turn, ...]
    summary: str

    def queried(self, corpus: str, domain: str, query: str) -> Conversation:
        """The example that asks for the summary."""
        identity = f"{corpus}/{self.name}"
        return Conversation(identity, corpus, domain, self.split, self.meeting, query, self.turns, self.summary)


@dataclass
class Notes:
    """Spans that end after their transcript, ids of examples that were left out and why, and of those without turns."""

    spans_past_end: int = 0
    dropped_empty_target: list[str] = field(default_factory=list)
    dropped_tested_meeting: list[str] = field(default_factory=list)
    kept_without_turns: list[str] = field(default_factory=list)

    def usable(self, examples: Iterable[Conversation]) -> list[Conversation]:
        """The examples with a reference. Those without a transcript are used, and noted."""
        found = list(examples)
        kept = [example for example in found if example.target]
        self.dropped_empty_target += [example.id for example in found if not example.target]
        self.kept_without_turns += [example.id for example in kept if not example.turns]
        return kept

    def untested(self, examples: Iterable[Conversation]) -> list[Conversation]:
        """All test examples, and of the others those whose meeting no test example has."""
        found = list(examples)
        tested = {example.meeting for example in found if example.split == "test"}
        kept = [example for example in found if example.split == "test" or example.meeting not in tested]
        self.dropped_tested_meeting += [e.id for e in found if e.split != "test" and e.meeting in tested]
        return kept
