"""data/prepared -> data/partitions/<group>/<setting>-<seed>.json: who holds which examples."""

from __future__ import annotations

from pipeline.clients.balanced import fitted
from pipeline.clients.kinds import partition
from pipeline.clients.manifest import check
from pipeline.corpora.prepared import examples_of
from pipeline.corpora.sampled import sampled
from pipeline.plan.orders import PartitionSpec, read_spec
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import say


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
