"""data/prepared -> data/partitions/<setting>-<seed>.json: who holds which examples."""

from __future__ import annotations

import shutil

from pipeline import layout
from pipeline.corpora.example import read_examples
from pipeline.files import write_json
from pipeline.partitions import domains
from pipeline.partitions.manifest import check
from pipeline.spec import PartitionSpec, read_spec


def run() -> None:
    spec = read_spec(layout.stage_spec("partition"), PartitionSpec)
    shutil.rmtree(layout.PARTITIONS, ignore_errors=True)
    examples = read_examples(layout.PREPARED / "qmsum.jsonl")
    for name, setting in spec.settings.items():
        for seed in spec.seeds:
            manifest = domains.partition(
                examples,
                [*setting["clients"], *spec.own],
                train_fraction=spec.train_fraction,
                validation_examples=spec.validation_examples,
            )
            path = layout.manifest(name, seed)
            check(manifest, examples, str(path))
            write_json(path, manifest)
