"""Who the clients of a federation on labelled texts are, and how many texts each of them has: one record a kind.

Clients have training texts. The server has `val` and `test`, unless clients are natural owners, who have their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pipeline.clients import dirichlet, exchange
from pipeline.clients.manifest import Manifest
from pipeline.clients.setting import Count, OfData, is_client_name
from pipeline.corpora.example import Example
from pipeline.errors import QuorumError
from pipeline.workspace.layout import OWN
from pipeline.workspace.record import FilePath, Json

SERVER = "server"
"""The manifest's entry for the development and test sets."""


def check_own(file: Path) -> None:
    """Check that DVC tracks a user's file.

    Raises:
        ValueError: the file is not in the folder where DVC looks for changes.
    """
    if OWN not in file.parents:
        raise ValueError(f"file: {file}: is not in {OWN}/, where DVC looks; move it there, and set {OWN}/{file.name}")


class Skewed(OfData):
    """Clients whose labels or clusters are drawn from Dir(α p), whose sizes from Dir(β 1), or both; neither: uniform.

    `least`: the fewest texts of a client. In params.yaml, without `alpha` and `beta` it takes the
    file's `alpha`, so that one key varies all. `spread: true`: no skew of labels, nor of sizes without `beta`.
    """

    kind: Literal["skewed"]
    clients: Count
    by: Literal["label", "cluster"] = "label"
    alpha: float | None = Field(default=None, gt=0)
    beta: float | None = Field(default=None, gt=0)
    least: Count = 1
    spread: bool = False

    @model_validator(mode="after")
    def _spread_or_skewed(self) -> Skewed:
        if self.spread and self.alpha is not None:
            raise ValueError("spread: leaves labels as they are, and alpha skews them; remove one")
        return self


class Natural(OfData):
    """Each client is an owner with at least `least` training texts, and with some development and test texts.

    `clients`: how many owners, the largest; None: all. `each`: the most training texts of an owner. `own`: whether a
    client is evaluated on its own development and test texts. `silos`: into how many clients similar owners are merged.
    """

    kind: Literal["natural"]
    clients: Count | None = None
    least: Count = 1
    each: Count | None = None
    own: bool = True
    silos: Count | None = None


class Given(OfData):
    """A partition from a file, of this project or in FedNLP's form."""

    kind: Literal["given"]
    file: FilePath

    @model_validator(mode="after")
    def _check_file(self) -> Given:
        check_own(self.file)
        return self


def skewed(skew: Skewed, texts: Mapping[str, Example], seed: int, clusters: Mapping[str, str]) -> Manifest:
    """Clients `client-00` and so on, with as many digits as the names need to sort in this order."""
    ids = ids_of(texts, "train")
    labels = [clusters[i] if skew.by == "cluster" else texts[i].label for i in ids]
    if skew.alpha is not None and len(set(labels)) < 2:
        raise QuorumError(f"alpha skews {skew.by}s, and all texts have one; set by: cluster, or beta, or spread: true")
    of: Json = {"seed": seed, "dataset": skew.data_sets[0], "alpha": skew.alpha, "beta": skew.beta, "least": skew.least}
    assigned = dirichlet.partition(ids, labels, skew.clients, **of)
    width = len(str(skew.clients - 1))
    return with_server({f"client-{number:0{width}d}": own for number, own in enumerate(assigned)}, texts)


def natural(skew: Natural, texts: Mapping[str, Example], seed: int, clusters: Mapping[str, str]) -> Manifest:
    assigned: dict[str, dict[str, list[str]]] = {}
    for identity, text in texts.items():
        owner = clusters.get(text.owner, "") if skew.silos else text.owner
        assigned.setdefault(owner, {}).setdefault(text.split, []).append(identity)
    there = {text.split for text in texts.values()}  # while tuning, no text is tested
    fit = {
        owner: own
        for owner, own in sorted(assigned.items())
        if owner and len(own.get("train", ())) >= skew.least and (not skew.own or there <= set(own))
    }
    largest = sorted(fit, key=lambda owner: (-len(fit[owner]["train"]), owner))[: skew.clients]
    if not largest or len(largest) < (skew.clients or 1):
        raise QuorumError(
            f"{len(largest)} owners have {skew.least} training texts and some of each split, and {skew.clients or 1} "
            "are wanted; lower clients or least"
        )
    _check_names(largest)
    taken = {owner: _sampled(fit[owner]["train"], skew, seed, owner) for owner in sorted(largest)}
    if not skew.own:
        return with_server(taken, texts)
    return {o: {"train": own, "val": fit[o]["val"], "test": fit[o].get("test", [])} for o, own in taken.items()}


def _sampled(ids: Sequence[str], skew: Natural, seed: int, owner: str) -> list[str]:
    if skew.each is None or skew.each >= len(ids):
        return list(ids)
    order = dirichlet.drawing(seed, skew.data_sets[0], f"of {owner}", skew.each, None).permutation(len(ids))
    return [ids[i] for i in sorted(order[: skew.each])]


def given(skew: Given, texts: Mapping[str, Example], seed: int, clusters: Mapping[str, str]) -> Manifest:
    there = {identity: texts[identity] for identity in ids_of(texts, "train")}
    assigned = {client: own for client, own in exchange.read(skew.file, skew.data_sets[0], there).items() if own}
    _check_names(assigned)
    return with_server(assigned, texts)


def _check_names(clients: Iterable[str]) -> None:
    """Refuse a client whose name is reserved, or cannot be a file's."""
    for name in clients:
        if not is_client_name(name):
            raise QuorumError(f"client {name!r}: is taken, or no name; use letters, digits, '_' and '-'")


def ids_of(texts: Mapping[str, Example], split: str) -> list[str]:
    """Ids of a split's texts, in the order of `texts`."""
    return [identity for identity, text in texts.items() if text.split == split]


def with_server(assigned: Mapping[str, list[str]], texts: Mapping[str, Example]) -> Manifest:
    """A manifest of clients with training texts only, and of the server with all other texts."""
    manifest: Manifest = {client: {"train": own, "val": [], "test": []} for client, own in assigned.items()}
    manifest[SERVER] = {"train": [], "val": ids_of(texts, "val"), "test": ids_of(texts, "test")}
    return manifest
