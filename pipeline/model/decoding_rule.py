"""How summaries are decoded, as plain data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DecodingRule:
    """How to decode; names are those of params.yaml.

    `max_tokens` counts the end token, `min_tokens` the tokens before it.
    """

    beams: int = 1
    length_penalty: float = 1.0
    no_repeat_ngram: int = 0
    min_tokens: int = 0
    max_tokens: int = 128
