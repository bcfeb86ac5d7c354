"""data/prepared -> data/partitions/<group>/<setting>-<seed>.json: who holds which examples."""

from __future__ import annotations

from pipeline.clients.balanced import fitted
from pipeline.clients.kinds import partition
from pipeline.clients.manifest import check
from pipeline.clients.rounds import check_rounds
from pipeline.clients.setting import Balanced
from pipeline.corpora.prepared import examples_of, sampled
from pipeline.plan.orders import PartitionOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import say


def run(group: str) -> None:
    order = read_order(layout.order("partition", group), PartitionOrder)
    empty_folder(layout.PARTITIONS / group)
    examples = examples_of(order.corpora)
    sample = sampled(order.corpora)
    for name, asked in order.settings.items():
        setting = fitted(asked, examples, sample)
        if isinstance(setting, Balanced) and setting != asked:
            say(f"partition {group}: {name}: the sample has less than params.yaml asks for: {setting.counts}")
        for seed in order.seeds:
            fold = order.folds.get(seed, "official")
            manifest = partition(name, setting, examples, seed, fold)
            path = layout.manifest(group, name, seed)
            check(manifest, examples, str(path))
            if name in order.batches and not sample:  # whose numbers mean nothing
                for line in check_rounds(name, setting, manifest, examples, seed, fold, order.batches[name]):
                    say(f"partition: {line}")
            write_json(path, manifest)
