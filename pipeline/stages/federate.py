"""data/texts -> data/federations/<setting>/<seed>.json: who holds which texts, and what each text's group is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.clients import exchange
from pipeline.clients.manifest import Manifest
from pipeline.clients.skews import SERVER, Given, Skewed, partition
from pipeline.clients.taking import taken
from pipeline.corpora.texts import Text
from pipeline.errors import QuorumError
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import FederateOrder
from pipeline.runs.text_data import prepared
from pipeline.runs.text_groups import groups_of, label_of
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import say


def run(setting: str) -> None:
    order = read_order(layout.order("federate", setting), FederateOrder)
    texts = prepared(order.dataset, order.task)
    try:
        drawn = {seed: _drawn(order, texts, seed) for seed in order.seeds}
    except QuorumError as error:
        raise QuorumError(f"params.yaml: settings.{setting}: {error}") from None
    # What lies there goes only when there is something to take its place.
    empty_folder(layout.FEDERATIONS / setting)
    for seed, one in drawn.items():
        _write(setting, order, seed, one)


@dataclass(frozen=True)
class _Drawn:
    """One seed's texts, and who holds them."""

    used: Mapping[str, Text]
    groups: Mapping[str, str]
    manifest: Manifest


def _drawn(order: FederateOrder, texts: Mapping[str, Text], seed: int) -> _Drawn:
    skew = order.skew
    if isinstance(skew, Given):
        skew = skew.model_copy(update={"file": layout.of_ones_own(layout.at_seed(skew.file, seed))})
    used = taken(texts, order.take, seed)
    groups = groups_of(skew, used, seed)
    return _Drawn(used, groups, partition(skew, used, seed, order.dataset, groups))


def _write(setting: str, order: FederateOrder, seed: int, drawn: _Drawn) -> None:
    used, skew = drawn.used, order.skew
    labels = {i: label_of(i, text, drawn.groups) for i, text in used.items()}
    write_json(layout.federation(setting, seed), {"manifest": drawn.manifest, "labels": labels})
    held = {client: own["train"] for client, own in drawn.manifest.items() if client != SERVER}
    if isinstance(skew, Skewed):
        name = exchange.name_of(skew.by, skew.clients, skew.alpha, skew.beta)
        path = Path(layout.federation(setting, seed)).with_name(f"{name}-{seed}.json")
        exchange.write(path, name, order.dataset, held, used)
    there = [identity for identity, text in used.items() if text.split == "train"]
    nobodys = len(there) - sum(map(len, held.values()))
    more = f"; {nobodys} training texts are nobody's" if nobodys else ""
    say(f"federate {setting}: seed {seed}: {len(held)} clients{more}")
