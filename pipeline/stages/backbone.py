"""A preset's weights and tokenizer -> models/backbones/<name>, in the hub's file layout."""

from __future__ import annotations

import shutil

from pipeline.model.obtain import obtain
from pipeline.plan.orders import BackboneOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say


def run(name: str) -> None:
    """Fetch or copy a backbone and convert it; one of another scale's runs gets a note instead.

    Raises:
        QuorumError: the weights cannot be obtained.
    """
    order = read_order(layout.order("backbone", name), BackboneOrder)
    folder = layout.backbone(name)
    shutil.rmtree(folder, ignore_errors=True)
    if order.left_out:
        say(f"backbone {name}: left out: {order.left_out}")
        write_json(folder / layout.ABOUT_BACKBONE, {"name": name, "digest": ""})
        return
    # In the repository itself: a folder that git does not know is missing from an experiment's copy of the workspace.
    weights = None if order.weights is None else layout.home() / order.weights.folder
    obtain(order.backbone, folder, layout.downloads(), weights)
