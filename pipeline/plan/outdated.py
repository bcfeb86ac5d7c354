"""Stages whose inputs lie outside the workspace and have changed since: DVC looks only inside it.

Corpora, a folder of weights, and the machine, which decides the precision of products.
"""

from __future__ import annotations

from pipeline.corpora.sources import is_outdated
from pipeline.plan.resolve import weights_folder
from pipeline.plan.schema import Params
from pipeline.plan.training import precision_of
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def outdated(params: Params) -> list[str]:
    """The stages that `dvc repro` would wrongly skip."""
    published = [
        name for name in params.sources if all(d.file is None for d in params.data.values() if d.source == name)
    ]
    stages = [f"ingest@{name}" for name in published if is_outdated(name, params.data_source)]
    return [*stages, "plan"] if _other_weights(params) or _other_machine(params) else stages


def _other_weights(params: Params) -> bool:
    planned = layout.order("backbone", params.backbones[0])
    if params.weights is None or not planned.is_file():
        return False
    known = read_json(planned)["weights"]
    return known is None or bool(known["files"] != weights_folder(params.weights).files)


def _other_machine(params: Params) -> bool:
    """Whether the plan is of a machine that uses another precision."""
    planned = layout.order("report")
    return planned.is_file() and read_json(planned).get("precision") != precision_of(params)
