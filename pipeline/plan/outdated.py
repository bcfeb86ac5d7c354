"""Stages whose inputs lie outside the workspace and have changed since: DVC looks only inside it."""

from __future__ import annotations

from pipeline.corpora.sources import is_outdated
from pipeline.plan.resolve import weights_folder
from pipeline.plan.schema import Params
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def outdated(params: Params) -> list[str]:
    """The stages of corpora and of weights that `dvc repro` would wrongly leave as they are."""
    stages = [f"ingest@{corpus}" for corpus in params.corpora if is_outdated(corpus, params.data_source)]
    planned = layout.order("backbone")
    if params.weights is not None and planned.is_file():
        known = read_json(planned)["weights"]
        if known is None or known["files"] != weights_folder(params.weights).files:
            stages.append("plan")
    return stages
