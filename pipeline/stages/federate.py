"""data/texts -> data/federations/<setting>/<seed>.json: which client has which texts, and each text's group."""

from __future__ import annotations

from pathlib import Path

from pipeline.clients import exchange
from pipeline.clients.skews import SERVER, Natural, Skewed
from pipeline.corpora.prepared import examples_of
from pipeline.errors import QuorumError
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import FederateOrder
from pipeline.runs.text_groups import FederationDraw, draw_federation, label_of
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.progress import say


def run(setting: str) -> None:
    """Draw and write a setting's federation at each seed.

    Raises:
        QuorumError: the setting does not fit the texts.
    """
    order = read_order(layout.order("federate", setting), FederateOrder)
    texts = examples_of([order.dataset], load_task(order.task).kind)
    if isinstance(order.skew, Natural) and not any(text.owner for text in texts.values()):
        raise QuorumError(
            f"params.yaml: settings.{setting}: kind: natural: no text of {order.dataset} has an owner; choose "
            "kind: skewed, or, in a file of your own, give each row one in a column `owner`"
        )
    try:
        federations = {
            seed: draw_federation(order.skew, order.take, texts, seed, order.dataset) for seed in order.seeds
        }
    except QuorumError as error:
        raise QuorumError(f"params.yaml: settings.{setting}: {error}") from None
    # The old files are removed only once the new ones can be written.
    empty_folder(layout.FEDERATIONS / setting)
    for seed, one in federations.items():
        _write(setting, order, seed, one)


def _write(setting: str, order: FederateOrder, seed: int, one: FederationDraw) -> None:
    used, skew = one.used, order.skew
    labels = {i: label_of(i, text, one.groups) for i, text in used.items()}
    write_json(layout.federation(setting, seed), {"manifest": one.manifest, "labels": labels})
    texts_of = {client: own["train"] for client, own in one.manifest.items() if client != SERVER}
    if isinstance(skew, Skewed):
        name = exchange.name_of(skew.by, skew.clients, skew.alpha, skew.beta)
        path = Path(layout.federation(setting, seed)).with_name(f"{name}-{seed}.json")
        exchange.write(path, name, order.dataset, texts_of, used)
    training = [identity for identity, text in used.items() if text.split == "train"]
    unassigned = len(training) - sum(map(len, texts_of.values()))
    more = f"; {unassigned} training texts have no client" if unassigned else ""
    say(f"federate {setting}: seed {seed}: {len(texts_of)} clients{more}")
