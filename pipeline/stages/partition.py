"""data/prepared -> data/partitions/<group>/<setting>-<seed>.json: which client has which examples."""

from __future__ import annotations

from pipeline.clients.balanced import fitted
from pipeline.clients.kinds import partition
from pipeline.clients.manifest import check
from pipeline.clients.rounds import check_rounds
from pipeline.clients.setting import Balanced
from pipeline.corpora.prepared import examples_of, sampled
from pipeline.plan.orders import PartitionOrder, read_order
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import say


def run(group: str) -> None:
    """Draw and check the manifest of each of a group's settings at each seed.

    Raises:
        QuorumError: a setting does not fit the examples.
    """
    order = read_order(layout.order("partition", group), PartitionOrder)
    empty_folder(layout.PARTITIONS / group)
    examples = examples_of(order.corpora, load_task(order.task).kind)
    sample = sampled(order.corpora)
    for name, planned in order.settings.items():
        setting = fitted(planned, examples, sample)
        if isinstance(setting, Balanced) and setting != planned:
            say(f"partition {group}: {name}: the sample has fewer examples than params.yaml needs: {setting.counts}")
        for seed in order.seeds:
            fold = order.folds.get(seed, "official")
            manifest = partition(name, setting, examples, seed, fold)
            path = layout.manifest(group, name, seed)
            check(manifest, examples, str(path))
            if name in order.batches and not sample:  # the sample's numbers mean nothing
                for line in check_rounds(name, setting, manifest, examples, seed, fold, order.batches[name]):
                    say(f"partition: {line}")
            write_json(path, manifest)
