"""A preset's weights and tokenizer -> models/backbone, in the hub's file layout."""

from __future__ import annotations

import shutil

from pipeline.model.obtain import obtain
from pipeline.plan.orders import BackboneOrder, read_order
from pipeline.workspace import layout


def run() -> None:
    """Fetch or copy the planned backbone and convert it.

    Raises:
        QuorumError: the weights cannot be obtained.
    """
    order = read_order(layout.order("backbone"), BackboneOrder)
    shutil.rmtree(layout.BACKBONE, ignore_errors=True)
    # In the repository itself: a folder that git does not know is missing from an experiment's copy of the workspace.
    weights = None if order.weights is None else layout.home() / order.weights.folder
    obtain(order.backbone, layout.BACKBONE, layout.downloads(), weights)
