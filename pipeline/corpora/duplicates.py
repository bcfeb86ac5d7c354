"""Equal texts of a data set: a test text that is also a training text measures what a model has memorized."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS
from pipeline.corpora.labelled import Question, Tagged


def normal(text: str) -> str:
    """A text in lower case with single spaces."""
    return " ".join(text.split()).lower()


def text_of(example: Any) -> str:
    """What a task reads of an example, without its label, tags, answers, title or summary."""
    match example:
        case Conversation():
            return "\n".join([example.query, *(f"{turn.speaker}: {turn.text}" for turn in example.turns)])
        case Tagged():
            return " ".join(example.words)
        case Question():
            return f"{example.question}\n{example.context}"
    return str(example.text)


def equal_texts(examples: Iterable[Any]) -> dict[str, int]:
    """Count the examples of a split whose text, apart from case and spaces, is also in an earlier split.

    Returns:
        `val_in_train`, `test_in_train` and `test_in_val`.
    """
    read = [(example.split, normal(text_of(example))) for example in examples]
    texts = {split: {text for own, text in read if own == split} for split in SPLITS}
    return {
        f"{later}_in_{earlier}": sum(own == later and text in texts[earlier] for own, text in read)
        for earlier, later in combinations(SPLITS, 2)
    }
