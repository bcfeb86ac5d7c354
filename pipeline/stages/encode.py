"""The frozen part of every example of a group, computed once -> work/store; data/encoded/<run>.json indexes it."""

from __future__ import annotations

import time

from pipeline.corpora.prepared import examples_of
from pipeline.model.loading import backbone_digest, planned_backbone
from pipeline.plan.orders import EncodeOrder, read_order
from pipeline.runs.encoding import encode
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json


def run(group: str) -> None:
    """Encode a group's examples, and note the time if any was computed."""
    began = time.monotonic()
    order = read_order(layout.order("encode", group), EncodeOrder)
    empty_folder(layout.ENCODED / group)
    backbone = planned_backbone(order)
    examples = examples_of(order.corpora, load_task(order.task).kind)
    computed = encode(order, group, backbone, backbone_digest(layout.BACKBONE), examples)
    if computed:
        timing = {"seconds": time.monotonic() - began, "examples": computed}
        write_json(layout.timing("encode", group), timing)
