"""data/prepared -> data/partitions/<group>/<setting>-<seed>.json: who holds which examples."""

from __future__ import annotations

from pipeline import layout
from pipeline.corpora.prepared import examples_of
from pipeline.corpora.sampled import sampled
from pipeline.files import empty_folder, write_json
from pipeline.partitions.balanced import fitted
from pipeline.partitions.kinds import partition
from pipeline.partitions.manifest import check
from pipeline.progress import say
from pipeline.spec import PartitionSpec, read_spec


def run(group: str) -> None:
    spec = read_spec(layout.stage_spec("partition", group), PartitionSpec)
    empty_folder(layout.PARTITIONS / group)
    examples = examples_of(group)
    sample = sampled(group)
    for name, asked in spec.settings.items():
        setting = fitted(asked, examples, sample)
        if setting != asked:
            say(f"partition {group}: {name}: the sample has less than params.yaml asks for: {setting.counts}")
        for seed in spec.seeds:
            manifest = partition(name, setting, examples, seed)
            path = layout.manifest(group, name, seed)
            check(manifest, examples, str(path))
            write_json(path, manifest)
