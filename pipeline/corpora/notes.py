"""What a corpus's reader had to mend, counted, so that the report can say so."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.corpora.example import Example


@dataclass
class Notes:
    """Spans that ran past their transcript's end, examples left out and why, and examples kept without a transcript."""

    spans_past_end: int = 0
    dropped_empty_target: list[str] = field(default_factory=list)
    dropped_tested_meeting: list[str] = field(default_factory=list)
    kept_without_turns: list[str] = field(default_factory=list)

    def keeps(self, example: Example) -> bool:
        """Whether an example can be used: not without a reference; without a transcript it is kept, and counted."""
        if not example.target:
            self.dropped_empty_target.append(example.id)
            return False
        if not example.turns:
            self.kept_without_turns.append(example.id)
        return True
