"""What a corpus's reader had to correct or leave out; the report shows the counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.corpora.conversation import Conversation


@dataclass
class Notes:
    """Spans that end after their transcript, ids of examples that were left out and why, and of those without turns."""

    spans_past_end: int = 0
    dropped_empty_target: list[str] = field(default_factory=list)
    dropped_tested_meeting: list[str] = field(default_factory=list)
    kept_without_turns: list[str] = field(default_factory=list)

    def keeps(self, example: Conversation) -> bool:
        """Whether an example can be used: it needs a reference. One without a transcript can, and is counted."""
        if not example.target:
            self.dropped_empty_target.append(example.id)
            return False
        if not example.turns:
            self.kept_without_turns.append(example.id)
        return True
