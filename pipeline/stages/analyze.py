"""What lies behind the scores -> reports/analysis: entropy deciles, train client by test domain, divergence."""

from __future__ import annotations

from pathlib import Path

from pipeline.corpora.prepared import examples_of
from pipeline.model.loader import Loader
from pipeline.model.loading import choose_device, load_backbone
from pipeline.plan.orders import AnalyzeSpec, read_spec
from pipeline.runs.analysis import crossed_of, deciles_of, divergence_of, orientation_of
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import progress


def run() -> None:
    spec = read_spec(layout.stage_spec("analyze"), AnalyzeSpec)
    empty_folder(layout.ANALYSIS)
    device = choose_device(spec.device)
    backbone = load_backbone(layout.BACKBONE, spec.adapted_layers, device)
    loader = Loader(device)
    examples = examples_of(layout.MORE)
    write_json(_path("orientation", "turns"), orientation_of(examples, spec.tested, use_stemmer=spec.use_stemmer))
    with progress("analyze", len(spec.distilling) + len(spec.crossed) + len(spec.manifests)) as advance:
        for run_id in spec.distilling:
            write_json(_path("deciles", run_id), deciles_of(backbone, loader, run_id))
            advance(1)
        for run_id in spec.crossed:
            write_json(_path("crossed", run_id), crossed_of(backbone, loader, run_id))
            advance(1)
        for name in spec.manifests:
            write_json(_path("divergence", name), divergence_of(examples, name, spec.topics))
            advance(1)


def _path(what: str, name: str) -> Path:
    return layout.ANALYSIS / what / f"{Path(name).name}.json"
