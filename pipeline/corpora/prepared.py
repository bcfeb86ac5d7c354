"""Prepared examples of the corpora that a plan names; those of other plans in the same folder are not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import read_examples
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def examples_of(corpora: Iterable[str]) -> dict[str, Conversation]:
    """All examples of the corpora, by id."""
    return {
        i: example for corpus in corpora for i, example in read_examples(layout.examples(corpus), Conversation).items()
    }


def is_sample(notes: Mapping[str, Any]) -> bool:
    """Whether the sample was read instead of a corpus, by the corpus's notes."""
    return bool(notes["source"]["source"] == "sample")


def sampled(corpora: Iterable[str]) -> set[str]:
    """The corpora of which only the sample was available. Results on the sample mean nothing."""
    return {corpus for corpus in corpora if is_sample(read_json(layout.notes(corpus)))}
