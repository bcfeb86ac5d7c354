"""data/prepared -> data/partitions/<group>/<setting>-<seed>.json: who holds which examples."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clients.balanced import fitted
from pipeline.clients.batches import LEAST_STEPS, short_rounds
from pipeline.clients.kinds import partition
from pipeline.clients.manifest import Manifest, check
from pipeline.clients.setting import Balanced, Setting
from pipeline.corpora.example import Example
from pipeline.corpora.prepared import examples_of, sampled
from pipeline.errors import QuorumError
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
            manifest = partition(name, setting, examples, seed, order.folds.get(seed, "official"))
            path = layout.manifest(group, name, seed)
            check(manifest, examples, str(path))
            if name in order.batches and not sample:  # whose numbers mean nothing
                _check_rounds(name, setting, manifest, examples, seed, order)
            write_json(path, manifest)


def _check_rounds(
    name: str, setting: Setting, manifest: Manifest, examples: Mapping[str, Example], seed: int, order: PartitionOrder
) -> None:
    """Refuse a share that leaves a client too few steps a round; a client that is too small by itself is told of.

    Raises:
        QuorumError: names the setting, the client, and what to change.
    """
    short = short_rounds(manifest, *order.batches[name])
    if not short:
        return
    whole = setting if isinstance(setting, Balanced) else setting.model_copy(update={"train_fraction": 1.0})
    everything = partition(name, whole, examples, seed, order.folds.get(seed, "official"))
    small = set() if isinstance(setting, Balanced) else set(short_rounds(everything, *order.batches[name]))
    for client, steps in short.items():
        found = f"client {client} has {len(manifest[client]['train'])} training examples, so {steps} steps a round"
        if client not in small:
            raise QuorumError(
                f"params.yaml: settings.{name}: {found}, not {LEAST_STEPS}; raise train_fraction or counts, or give "
                "its runs a smaller batch_size"
            )
        say(f"partition: {name}: {found}, where {LEAST_STEPS} are wanted: it may learn little")
