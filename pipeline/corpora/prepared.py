"""Prepared examples of the data sets that a plan names; those of other plans in the same folder are not read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipeline.corpora.example import read_examples
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.record import Json


def examples_of(data: Iterable[str], kind: type[Any]) -> Json:
    """All examples of some data sets, by id.

    Args:
        kind: the record that their task reads.

    Raises:
        QuorumError: one is not prepared.
    """
    files = [read_examples(layout.examples(name), kind) for name in data]
    return {identity: example for examples in files for identity, example in examples.items()}


def is_sample(notes: Json) -> bool:
    """Whether the sample was read instead of a source, by a data set's notes."""
    return bool(notes["source"]["source"] == "sample")


def sampled(data: Iterable[str]) -> set[str]:
    """The data sets of which only the sample was available. Results on the sample mean nothing."""
    return {name for name in data if is_sample(read_json(layout.notes(name)))}
