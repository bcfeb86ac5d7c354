"""data/prepared -> data/partitions/<setting>/<seed>.json: which client has which examples, and each one's group."""

from collections.abc import Mapping

from pipeline.clients import exchange
from pipeline.clients.manifest import seen_in_training
from pipeline.clients.skews import SERVER, Natural, Skewed
from pipeline.corpora.example import examples_of, sampled
from pipeline.corpora.statistics import equal_between
from pipeline.corpora.text import normal
from pipeline.plan.orders import PartitionOrder, read_order
from pipeline.runs.partitioning import Drawn, draw
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import say


def run(setting: str) -> None:
    """Draw, check and write a setting's partition at each seed."""
    order = read_order(layout.order("partition", setting), PartitionOrder)
    examples, sample = examples_of(order.data, load_task(order.task).kind), sampled(order.data)
    texts = {identity: normal(example.text) for identity, example in examples.items()}
    partitions = {seed: draw(setting, order, examples, seed, sample) for seed in order.seeds}
    empty_folder(layout.PARTITIONS / setting)  # The old files are removed only once the new ones can be written.
    for seed, one in partitions.items():
        _write(setting, order, seed, one, texts)


def _write(setting: str, order: PartitionOrder, seed: int, one: Drawn, texts: Mapping[str, str]) -> None:
    path, seen = layout.partition(setting, seed), seen_in_training(one.manifest, texts)
    write_json(path, {"manifest": one.manifest, "labels": one.labels} | ({"seen": seen} if seen else {}))
    training = {client: own["train"] for client, own in one.manifest.items() if client != SERVER}
    if isinstance(order.setting, Skewed):
        skew = order.setting
        name = exchange.name_of(skew.by, skew.clients, skew.alpha, skew.beta)
        exchange.write(path.with_name(f"{name}-{seed}.json"), name, order.data[0], training, one.used)
    given = sum(map(len, training.values()))
    unassigned = sum(example.split == "train" for example in one.used.values()) - given
    more = f"; {unassigned} training examples have no client" if unassigned else ""
    if isinstance(order.setting, Natural) and order.setting.silos is None:
        owners = {one.used[i].owner for own in training.values() for i in own}
        if out := sorted({e.owner for e in one.used.values() if e.split == "train"} - owners - {""}):
            more += f"; {len(out)} owners are no clients, such as {out[0]}: too few training texts, or none of a split"
    if shared := equal_between({client: [texts[i] for i in own] for client, own in training.items()}):
        more += f"; {shared} training texts are another client's, too"
    if seen:
        more += f"; {len(seen)} test texts are training texts, too"
    say(f"partition {setting}: seed {seed}: {len(training)} clients{more}")
