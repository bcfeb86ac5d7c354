"""Analyses behind the scores -> reports/analysis: entropy deciles, train client by test domain, divergence."""

from __future__ import annotations

from pathlib import Path

from pipeline.corpora.prepared import examples_of
from pipeline.federated.inputs import TaskBackbone
from pipeline.model.loader import Loader
from pipeline.model.loading import planned_backbone
from pipeline.plan.orders import AnalyzeOrder, read_order
from pipeline.runs.analysis import crossed_of, deciles_of, divergence_of
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import progress


def run() -> None:
    """Write the deciles, crossed tests and divergences that the order names."""
    order = read_order(layout.order("analyze"), AnalyzeOrder)
    empty_folder(layout.ANALYSIS)
    backbone = planned_backbone(order)
    loader = Loader(layout.store(), backbone.device)
    seen = TaskBackbone(backbone, backbone.head)
    examples = examples_of(order.corpora, load_task(order.task).kind)
    with progress("analyze", len(order.distilling) + len(order.crossed) + len(order.manifests)) as advance:
        for run_id in order.distilling:
            write_json(_path("deciles", run_id), deciles_of(seen, loader, run_id))
            advance(1)
        for run_id in order.crossed:
            write_json(_path("crossed", run_id), crossed_of(seen, loader, run_id))
            advance(1)
        for name in order.manifests:
            write_json(_path("divergence", name), divergence_of(examples, name, order.topics))
            advance(1)


def _path(what: str, name: str) -> Path:
    return layout.ANALYSIS / what / f"{Path(name).name}.json"
