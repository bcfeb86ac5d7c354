"""Partitions as JSON files with FedNLP's schema and names.

Under a name such as `niid_label_clients=100_alpha=1.0` a file lists how many clients there are and which examples each
trains on. Our files add the data set's name and a hash of the training texts' ids, labels, owners and groups, by which
a reader knows that a file is for the same data.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.corpora.example import Example
from pipeline.errors import QuorumError
from pipeline.workspace.files import read_json, sha256_json, write_json

Texts = Mapping[str, Example]  # training texts by their ids
Assignment = Mapping[str, Sequence[str]]  # client -> ids of its training examples


def name_of(by: str, clients: int, alpha: float | None, beta: float | None) -> str:
    """FedNLP's name of a partition. It has none for labels and quantities at once; ours has both parts.

    >>> name_of("label", 100, 1.0, None), name_of("cluster", 30, 0.1, None), name_of("label", 100, None, 5.0)
    ('niid_label_clients=100_alpha=1.0', 'niid_cluster_clients=30_alpha=0.1', 'niid_quantity_clients=100_beta=5.0')
    """
    if alpha is None and beta is None:
        return f"uniform_clients={clients}"
    what = "quantity" if alpha is None else by if beta is None else f"{by}_quantity"
    parameters = [f"{name}={float(value)}" for name, value in (("alpha", alpha), ("beta", beta)) if value is not None]
    return "_".join([f"niid_{what}_clients={clients}", *parameters])


def write(path: Path, name: str, dataset: str, assigned: Assignment, texts: Texts) -> None:
    """Write a partition under its name; `texts` may hold more than is assigned."""
    dealt = {identity: texts[identity] for own in assigned.values() for identity in own}
    partition = {client: {"train": list(own)} for client, own in assigned.items()}
    content = {"n_clients": len(assigned), "partition_data": partition}
    write_json(path, {"dataset": dataset, "train_texts": _hash(dealt), name: content})


def _hash(texts: Texts) -> str:
    """A hash of each text's id, label, owner and group. It changes when the lines of a text file are shuffled."""
    return sha256_json(sorted([identity, text.label, text.owner, text.group] for identity, text in texts.items()))


def read(path: Path, dataset: str, texts: Texts) -> dict[str, list[str]]:
    """Client -> ids of its training examples, from a file.

    `texts`: all training texts. Raises QuorumError if the file is missing or no partition, or belongs to other data.
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
    if (promised := named[0].get("n_clients", len(clients))) != len(clients):
        raise QuorumError(f"{path}: n_clients is {promised}, and it holds {len(clients)}; a part of it may be missing")
    assigned = {client: list(map(str, own["train"])) for client, own in clients.items()}
    remedy = "give a partition of the training texts that this seed uses"
    if content.get("dataset", dataset) != dataset:
        raise QuorumError(f"{path}: is a partition of {content['dataset']}, not of {dataset}; {remedy}")
    dealt = [identity for own in assigned.values() for identity in own]
    if len(set(dealt)) < len(dealt):
        raise QuorumError(f"{path}: deals an example to two clients; correct it")
    if strange := sorted(set(dealt) - set(texts)):
        raise QuorumError(f"{path}: {strange[0]} is no training example of {dataset}; {remedy}")
    if "train_texts" in content and content["train_texts"] != _hash(texts):
        raise QuorumError(f"{path}: was made of other training examples of {dataset}; {remedy}")
    return assigned
