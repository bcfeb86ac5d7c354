"""Prepared examples, of the corpora that a plan names: what lies beside them of another plan leaves no trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.corpora.example import Example, read_examples
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def examples_of(corpora: Iterable[str]) -> dict[str, Example]:
    """All examples of some corpora, by id."""
    return {i: example for corpus in corpora for i, example in read_examples(layout.examples(corpus)).items()}


def is_sample(notes: Mapping[str, Any]) -> bool:
    """Whether the sample stands in a corpus's place, by what was noted when it was read."""
    return bool(notes["source"]["source"] == "sample")


def sampled(corpora: Iterable[str]) -> set[str]:
    """The corpora in whose place the sample stands: no number made from it means anything."""
    return {corpus for corpus in corpora if is_sample(read_json(layout.notes(corpus)))}
