"""A preset's weights and tokenizer -> models/backbone, in the hub's file layout."""

from __future__ import annotations

import shutil

from pipeline.model.obtain import obtain
from pipeline.plan.orders import BackboneSpec, read_spec
from pipeline.workspace import layout


def run() -> None:
    spec = read_spec(layout.stage_spec("backbone"), BackboneSpec)
    shutil.rmtree(layout.BACKBONE, ignore_errors=True)
    # At home: a folder that git does not know is missing from an experiment's copy of the workspace.
    weights = None if spec.weights is None else layout.home() / spec.weights.folder
    obtain(spec.backbone, layout.BACKBONE, layout.downloads(), weights)
