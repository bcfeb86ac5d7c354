"""One corpus as published -> data/raw/<corpus>, checked; `source.json` in it records where it came from."""

from __future__ import annotations

import shutil

from pipeline.corpora.own import split_folder
from pipeline.corpora.qmsum import own_folder
from pipeline.corpora.sources import choose, commit_of, fetch
from pipeline.plan.orders import IngestOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


def run(corpus: str) -> None:
    """Fetch a corpus, with the organisation's own meetings, and record its source.

    Raises:
        QuorumError: no source has the corpus, or a file is damaged.
    """
    order = read_order(layout.order("ingest", corpus), IngestOrder)
    folder = layout.raw(corpus)
    shutil.rmtree(folder, ignore_errors=True)
    source = choose(corpus, order.data_source)
    fetch(corpus, source, folder)
    for client, own in order.own.items():
        # In the repository itself: data/own is not in git, so an experiment's copy of the workspace lacks it.
        split_folder(layout.home() / own.folder, own_folder(folder, client), roles=own.roles)
    commit = None if source == "sample" else commit_of(corpus)
    write_json(layout.source_record(corpus), {"source": source, "commit": commit})
