"""Corpora as published -> data/raw, checked; `data/raw/source.json` records where they came from."""

from __future__ import annotations

import shutil

from pipeline import layout
from pipeline.corpora.own import split_folder
from pipeline.corpora.sources import QMSUM_COMMIT, fetch_qmsum, resolve
from pipeline.files import write_json
from pipeline.spec import IngestSpec, read_spec


def run() -> None:
    spec = read_spec(layout.stage_spec("ingest"), IngestSpec)
    shutil.rmtree(layout.RAW, ignore_errors=True)
    source = resolve(spec.data_source)
    fetch_qmsum(source, layout.RAW / "qmsum")
    for client, folder in spec.own.items():
        # At home: data/own is not in git, so an experiment's copy of the workspace lacks it.
        split_folder(layout.home() / folder, layout.RAW / "own" / client)
    write_json(layout.RAW / "source.json", {"qmsum": source, "commit": None if source == "sample" else QMSUM_COMMIT})
