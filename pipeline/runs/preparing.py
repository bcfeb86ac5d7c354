"""Partitions and encodes runs outside of the DVC stages: those of `tune` and of a federation's node."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clients.manifest import Manifest
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS
from pipeline.corpora.prepared import sampled
from pipeline.model.loading import backbone_digest, planned_backbone
from pipeline.plan.orders import EncodeOrder
from pipeline.plan.resolve import Ids, of_group, partition_order
from pipeline.plan.schema import Params
from pipeline.runs.encoding import encode
from pipeline.runs.partitioning import draw
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


def partition_and_encode(
    params: Params, group: str, ids: Ids, examples: Mapping[str, Conversation]
) -> dict[str, Manifest]:
    """Partition and encode runs as their stages would: writes manifests, stored prefixes and indices.

    Returns run id -> its manifest.

    Args:
        group: the runs' group, under which the files are written.

    Raises:
        QuorumError: a client has too few steps a round.
    """
    orders = of_group(params, group, ids)
    order = orders[f"encode/{group}"]
    assert isinstance(order, EncodeOrder)
    drawn: dict[str, Manifest] = {}
    there = [split for split in SPLITS if any(example.split == split for example in examples.values())]
    for name, seed in dict.fromkeys((params.all_runs[name].setting, seed) for name, seed in ids.values()):
        planned = partition_order(params, name, [seed])
        manifest = draw(name, planned, examples, seed, sampled(planned.data), there).manifest
        write_json(layout.partition(f"{group}/{name}", seed), {"manifest": manifest})
        drawn[f"{name}/{seed}"] = manifest
    encode(order, group, planned_backbone(order), backbone_digest(layout.BACKBONE), examples, drawn)
    return {run: drawn[order.manifests[run]] for run in ids}
