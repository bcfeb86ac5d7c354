"""A query on a conversation, with the turns that answer it and the reference summary: the record of meeting corpora."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.corpora.example import CLOSED, Split


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation: who spoke, and the words."""

    __pydantic_config__ = CLOSED

    speaker: str
    text: str


@dataclass(frozen=True)
class Conversation:
    """One query on one meeting or dialogue; see `Example`."""

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
        """The domain: the client that has the conversation."""
        return self.domain

    @property
    def group(self) -> str:
        """The meeting: its queries are not independent."""
        return self.meeting

    @property
    def label(self) -> str:
        """The domain."""
        return self.domain
