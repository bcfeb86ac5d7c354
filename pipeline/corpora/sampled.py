"""Whether the sample stands in a corpus's place: no number made from it means anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.corpora.prepared import prepared
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def is_sample(notes: Mapping[str, Any]) -> bool:
    """By what was noted when the corpus was read."""
    return bool(notes["source"]["source"] == "sample")


def sampled(group: str) -> set[str]:
    """The corpora, of those that a group of runs reads, in whose place the sample stands."""
    corpora = {path.parent.name for path in prepared(group)}
    return {corpus for corpus in corpora if is_sample(read_json(layout.notes(corpus)))}
