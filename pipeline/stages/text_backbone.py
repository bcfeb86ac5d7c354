"""A preset's weights and tokenizer -> models/backbones/<name>: one of several that an experiment uses."""

from __future__ import annotations

import shutil

from pipeline.model.obtain import obtain
from pipeline.plan.orders import BackboneOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say


def run(name: str) -> None:
    """Fetch a backbone; one of another scale's runs gets an empty folder."""
    order = read_order(layout.order("backbone", name), BackboneOrder)
    folder = layout.backbone_of(name)
    shutil.rmtree(folder, ignore_errors=True)
    if not order.backbone:
        say(f"backbone {name}: only runs of another scale use it")
        write_json(folder / layout.ABOUT_BACKBONE, {"name": name, "digest": ""})
        return
    obtain(order.backbone, folder, layout.downloads())
