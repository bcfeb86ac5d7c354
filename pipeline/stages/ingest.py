"""One source as published -> data/raw/<source>, checked; `source.json` in it records where it came from."""

import shutil

from pipeline.corpora.catalog import SOURCES
from pipeline.corpora.organisation import split_folder
from pipeline.corpora.qmsum import own_folder
from pipeline.corpora.sources import choose, fetch
from pipeline.plan.orders import IngestOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


def run(name: str) -> None:
    """Fetch a source, with users' own meetings, and record where it came from. A user's file stays where it is."""
    order = read_order(layout.order("ingest", name), IngestOrder)
    folder = layout.raw(name)
    shutil.rmtree(folder, ignore_errors=True)
    if order.file is not None:
        write_json(layout.source_record(name), {"source": "own", "commit": None})
        return
    source = choose(name, order.data_source)
    fetch(name, source, folder)
    for client, own in order.own.items():
        # In the repository itself: data/own is not in git, so an experiment's copy of the workspace lacks it.
        split_folder(layout.home() / own.folder, own_folder(folder, client), roles=own.roles, query=own.query)
    commit = None if source == "sample" else SOURCES[name].commit
    write_json(layout.source_record(name), {"source": source, "commit": commit})
