"""What a summary looks like: its length and how much it repeats itself."""

from __future__ import annotations

NGRAM = 4


def length(text: str) -> int:
    """Words, split at white space."""
    return len(text.split())


def repetition(text: str) -> float:
    """The share, in percent, of 4-grams of words that occurred before in the same text; 0 below five words."""
    words = text.lower().split()
    ngrams = [tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)]
    return 100.0 * (1 - len(set(ngrams)) / len(ngrams)) if ngrams else 0.0
