"""Partitions as files that others can read: JSON in the form, and by the names, of FedNLP's.

Its partition files hold, under a name such as `niid_label_clients=100_alpha=1.0`, how many clients there are and which
examples each trains on. Ours add what a reader needs to know that a file is of the same data: the data set's name and a
hash of the training texts' ids, labels, owners and groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.corpora.texts import Text
from pipeline.errors import QuorumError
from pipeline.workspace.files import read_json, sha256_json, write_json

Texts = Mapping[str, Text]
"""Training texts by their ids."""
Held = Mapping[str, Sequence[str]]
"""Client -> the training examples that it holds."""


def name_of(by: str, clients: int, alpha: float | None, beta: float | None) -> str:
    """FedNLP's name of a partition; theirs has none of labels and quantities at once, so ours has both parts.

    >>> name_of("label", 100, 1.0, None), name_of("cluster", 30, 0.1, None), name_of("label", 100, None, 5.0)
    ('niid_label_clients=100_alpha=1.0', 'niid_cluster_clients=30_alpha=0.1', 'niid_quantity_clients=100_beta=5.0')
    """
    if alpha is None and beta is None:
        return f"uniform_clients={clients}"
    what = "quantity" if alpha is None else by if beta is None else f"{by}_quantity"
    drawn = [f"{name}={float(value)}" for name, value in (("alpha", alpha), ("beta", beta)) if value is not None]
    return "_".join([f"niid_{what}_clients={clients}", *drawn])


def write(path: Path, name: str, dataset: str, held: Held, texts: Texts) -> None:
    """
    Args:
        texts: those that are held, and others.
    """
    dealt = {identity: texts[identity] for own in held.values() for identity in own}
    partition = {client: {"train": list(own)} for client, own in held.items()}
    content = {"n_clients": len(held), "partition_data": partition}
    write_json(path, {"dataset": dataset, "train_texts": _hash(dealt), name: content})


def _hash(texts: Texts) -> str:
    """Of who is who: ids, and of each its label, owner and group. Lines of a file that were shuffled are others."""
    return sha256_json(sorted([identity, text.label, text.owner, text.group] for identity, text in texts.items()))


def read(path: Path, dataset: str, texts: Texts) -> dict[str, list[str]]:
    """The clients of a file.

    Args:
        texts: the training examples that there are.

    Raises:
        QuorumError: the file is missing or no partition, or is of other data.
    """
    content = read_json(path, remedy="export a partition, or correct `file`")
    parts = content.values() if isinstance(content, dict) else ()
    named = [value for value in parts if isinstance(value, dict) and "partition_data" in value]
    if len(named) != 1:
        raise QuorumError(f"{path}: holds {len(named)} partitions, and 1 is wanted; give a file of one")
    clients = named[0]["partition_data"]
    for client, own in clients.items() if isinstance(clients, dict) else [("partition_data", clients)]:
        if not isinstance(own, dict) or not isinstance(own.get("train"), list):
            raise QuorumError(f"{path}: {client} has no list `train` of texts; give each client one")
    if (told := named[0].get("n_clients", len(clients))) != len(clients):
        raise QuorumError(f"{path}: n_clients is {told}, and it holds {len(clients)}; a part of it may be missing")
    held = {client: list(map(str, own["train"])) for client, own in clients.items()}
    _check(path, content, dataset, held, texts)
    return held


def _check(path: Path, content: Mapping[str, Any], dataset: str, held: Held, texts: Texts) -> None:
    remedy = "give a partition of the training texts that this seed uses"
    if content.get("dataset", dataset) != dataset:
        raise QuorumError(f"{path}: is a partition of {content['dataset']}, not of {dataset}; {remedy}")
    dealt = [identity for own in held.values() for identity in own]
    if len(set(dealt)) < len(dealt):
        raise QuorumError(f"{path}: deals an example to two clients; correct it")
    strange = sorted(set(dealt) - set(texts))
    if strange:
        raise QuorumError(f"{path}: {strange[0]} is no training example of {dataset}; {remedy}")
    if "train_texts" in content and content["train_texts"] != _hash(texts):
        raise QuorumError(f"{path}: was made of other training examples of {dataset}; {remedy}")
