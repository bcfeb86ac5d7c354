"""data/prepared -> data/partitions/<group>/<setting>-<seed>.json: who holds which examples."""

from __future__ import annotations

from dataclasses import asdict

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
        setting = asked
        # Sizes are chosen for real corpora; of the sample, whose numbers mean nothing, what there is will do.
        if any(e.domain in asked.clients and e.corpus in sample for e in examples.values()):
            setting = fitted(asked, examples)
        if setting.counts and setting != asked:
            have = ", ".join(f"{split} {count}" for split, count in asdict(setting.counts).items())
            say(f"partition {group}: {name}: {have} of the sample for every client, less than params.yaml asks for")
        for seed in spec.seeds:
            manifest = partition(name, setting, examples, seed)
            path = layout.manifest(group, name, seed)
            check(manifest, examples, str(path))
            write_json(path, manifest)
