"""Runs that no stage makes, as those of `tune` and `audit`: their manifests, stored prefixes and indices."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clients.kinds import partition
from pipeline.clients.manifest import Manifest
from pipeline.corpora.example import Example
from pipeline.model.loading import backbone_digest, planned_backbone
from pipeline.plan.orders import EncodeOrder
from pipeline.plan.resolve import Ids, of_group
from pipeline.plan.schema import Params
from pipeline.runs.encoding import encode
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


def encode_aside(params: Params, group: str, ids: Ids, examples: Mapping[str, Example]) -> dict[str, Manifest]:
    """Run id -> who holds which examples; what its training reads is in the store then, and its index is written.

    Args:
        group: a name that no stage has.
    """
    order = of_group(params, group, ids)[f"encode/{group}"]
    assert isinstance(order, EncodeOrder)
    manifests: dict[str, Manifest] = {}
    for run, (name, seed) in ids.items():
        setting = params.all_runs[name].setting
        fold = params.folds.get(seed, "official")
        manifests[run] = partition(setting, params.setting_of(setting), examples, seed, fold)
        write_json(layout.manifest(group, setting, seed), manifests[run])
    encode(order, group, planned_backbone(order), backbone_digest(layout.BACKBONE), examples)
    return manifests
