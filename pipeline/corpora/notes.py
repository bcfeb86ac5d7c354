"""What a corpus's reader had to mend, counted, so that the report can say so."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Notes:
    """Spans that ran past their transcript's end, examples left out, and examples kept without a transcript."""

    spans_past_end: int = 0
    dropped_empty_target: list[str] = field(default_factory=list)
    kept_without_turns: list[str] = field(default_factory=list)
