"""data/texts -> data/federations/<setting>/<seed>.json: who holds which texts, and what each text's group is."""

from __future__ import annotations

from pathlib import Path

from pipeline.clients import exchange
from pipeline.clients.skews import SERVER, Given, Skewed, partition
from pipeline.clients.taking import taken
from pipeline.errors import QuorumError
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import FederateOrder
from pipeline.runs.text_data import groups_of, label_of, prepared
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import say


def run(setting: str) -> None:
    order = read_order(layout.order("federate", setting), FederateOrder)
    empty_folder(layout.FEDERATIONS / setting)
    texts = prepared(order.dataset, order.task)
    for seed in order.seeds:
        skew = order.skew
        if isinstance(skew, Given):
            skew = skew.model_copy(update={"file": layout.of_ones_own(layout.at_seed(skew.file, seed))})
        try:
            used = taken(texts, order.take, seed)
            groups = groups_of(skew, used, seed)
            manifest = partition(skew, used, seed, order.dataset, groups)
        except QuorumError as error:
            raise QuorumError(f"params.yaml: settings.{setting}: {error}") from None
        labels = {i: label_of(i, text, groups) for i, text in used.items()}
        write_json(layout.federation(setting, seed), {"manifest": manifest, "labels": labels})
        held = {client: own["train"] for client, own in manifest.items() if client != SERVER}
        if isinstance(skew, Skewed):
            name = exchange.name_of(skew.by, skew.clients, skew.alpha, skew.beta)
            path = Path(layout.federation(setting, seed)).with_name(f"{name}-{seed}.json")
            exchange.write(path, name, order.dataset, held, used)
        there = [identity for identity, text in used.items() if text.split == "train"]
        nobodys = len(there) - sum(map(len, held.values()))
        more = f"; {nobodys} training texts are nobody's" if nobodys else ""
        say(f"federate {setting}: seed {seed}: {len(held)} clients{more}")
