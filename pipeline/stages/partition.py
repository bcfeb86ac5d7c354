"""data/prepared -> data/partitions/<group>/<setting>-<seed>.json: who holds which examples."""

from __future__ import annotations

from pipeline import layout
from pipeline.corpora.prepared import examples_of
from pipeline.files import empty_folder, write_json
from pipeline.partitions.kinds import KINDS
from pipeline.partitions.manifest import check
from pipeline.spec import PartitionSpec, read_spec


def run(group: str) -> None:
    spec = read_spec(layout.stage_spec("partition", group), PartitionSpec)
    empty_folder(layout.PARTITIONS / group)
    examples = examples_of(group)
    for name, setting in spec.settings.items():
        for seed in spec.seeds:
            manifest = KINDS[setting.kind](setting, examples, seed)
            path = layout.manifest(group, name, seed)
            check(manifest, examples, str(path))
            write_json(path, manifest)
