"""Partitions and encodes runs outside of the DVC stages: those of `tune` and of a federation's node."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clients.kinds import partition
from pipeline.clients.manifest import Manifest
from pipeline.clients.rounds import check_rounds
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.prepared import sampled
from pipeline.model.loading import backbone_digest, planned_backbone
from pipeline.plan.orders import EncodeOrder, PartitionOrder
from pipeline.plan.resolve import Ids, of_group
from pipeline.plan.schema import Params
from pipeline.runs.encoding import encode
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say


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
    order, drawing = orders[f"encode/{group}"], orders[f"partition/{group}"]
    assert isinstance(order, EncodeOrder)
    assert isinstance(drawing, PartitionOrder)
    sample = sampled(order.corpora)
    manifests: dict[str, Manifest] = {}
    for run, (name, seed) in ids.items():
        setting = params.all_runs[name].setting
        planned, fold = params.setting_of(setting), params.folds.get(seed, "official")
        manifests[run] = manifest = partition(setting, planned, examples, seed, fold)
        if setting in drawing.batches and not sample:
            for line in check_rounds(setting, planned, manifest, examples, seed, fold, drawing.batches[setting]):
                say(f"{group}: {line}")
        write_json(layout.manifest(group, setting, seed), manifest)
    encode(order, group, planned_backbone(order), backbone_digest(layout.BACKBONE), examples)
    return manifests
