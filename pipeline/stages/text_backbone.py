"""A preset's weights and tokenizer -> models/backbones/<name>: one of several that an experiment uses."""

from __future__ import annotations

import shutil

from pipeline.model.obtain import obtain
from pipeline.plan.orders import BackboneOrder, read_order
from pipeline.workspace import layout


def run(name: str) -> None:
    order = read_order(layout.order("backbone", name), BackboneOrder)
    folder = layout.backbone_of(name)
    shutil.rmtree(folder, ignore_errors=True)
    obtain(order.backbone, folder, layout.downloads())
