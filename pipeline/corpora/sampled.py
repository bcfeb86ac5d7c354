"""In which corpora's place the sample stands: no number made from them means anything."""

from __future__ import annotations

from pipeline import layout
from pipeline.corpora.prepared import prepared
from pipeline.files import read_json


def sampled(group: str) -> set[str]:
    """Of the corpora that a group of runs reads."""
    corpora = {path.parent.name for path in prepared(group)}
    return {corpus for corpus in corpora if read_json(layout.notes(corpus))["source"]["source"] == "sample"}
