"""How summaries are decoded, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DecodingRule:
    """Lengths are in new tokens, the end token included; names are those of params.yaml."""

    beams: int = 1
    length_penalty: float = 1.0
    no_repeat_ngram: int = 0
    min_tokens: int = 0
    max_tokens: int = 128
