"""Who the clients of a federation on labelled texts are, and how many texts each of them has: one record a kind.

Clients have training texts. The server has `val` and `test`, unless clients are natural owners, who have their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pipeline.clients import dirichlet, exchange
from pipeline.clients.manifest import Manifest, by_split
from pipeline.clients.setting import Count, OfData, is_client_name
from pipeline.clients.taking import largest_owners
from pipeline.corpora.example import Example
from pipeline.errors import QuorumError
from pipeline.workspace.layout import OWN
from pipeline.workspace.record import FilePath, Json

SERVER = "server"  # the manifest's entry for the development and test sets


def check_own(file: Path) -> None:
    """Check that DVC tracks a user's file. Raises ValueError if it is not in the folder where DVC looks for changes."""
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

    def draw(self, examples: Mapping[str, Example], seed: int, groups: Mapping[str, str]) -> Manifest:
        """Clients `client-00` and so on, with as many digits as the names need to sort in this order.

        Raises QuorumError if there are too few texts, or alpha has no labels to skew.
        """
        ids = by_split(examples.values())["train"]
        labels = [groups[i] if self.by == "cluster" else examples[i].label for i in ids]
        if self.alpha is not None and len(set(labels)) < 2:
            raise QuorumError(
                f"alpha skews {self.by}s, and all texts have one; set by: cluster, or beta, or spread: true"
            )
        of: Json = {"alpha": self.alpha, "beta": self.beta, "least": self.least}
        assigned = dirichlet.partition(ids, labels, self.clients, seed=seed, dataset=self.data_sets[0], **of)
        width = len(str(self.clients - 1))
        return with_server({f"client-{number:0{width}d}": own for number, own in enumerate(assigned)}, examples)


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

    def draw(self, examples: Mapping[str, Example], seed: int, groups: Mapping[str, str]) -> Manifest:
        """Owners, or silos of owners, as clients.

        Raises QuorumError if there are too few, or one has a name that no client can have.
        """
        owners = {i: groups.get(one.owner, "") if self.silos else one.owner for i, one in examples.items()}
        largest = largest_owners(examples, owners, self.least, in_each_split=self.own)[: self.clients]
        if not largest or len(largest) < (self.clients or 1):
            raise QuorumError(
                f"{len(largest)} owners have {self.least} training texts and some of each split, and "
                f"{self.clients or 1} are wanted; lower clients or least"
            )
        _check_names(largest)
        manifest: Manifest = {}
        for owner in sorted(largest):
            manifest[owner] = by_split(one for i, one in examples.items() if owners[i] == owner)
            manifest[owner]["train"] = self._sampled(manifest[owner]["train"], seed, owner)
        return manifest if self.own else with_server({o: own["train"] for o, own in manifest.items()}, examples)

    def _sampled(self, ids: list[str], seed: int, owner: str) -> list[str]:
        if self.each is None or self.each >= len(ids):
            return ids
        order = dirichlet.drawing(seed, self.data_sets[0], f"of {owner}", self.each, None).permutation(len(ids))
        return [ids[i] for i in sorted(order[: self.each])]


class Given(OfData):
    """A partition from a file, of this project or in FedNLP's form."""

    kind: Literal["given"]
    file: FilePath

    @model_validator(mode="after")
    def _check_file(self) -> Given:
        check_own(self.file)
        return self

    def draw(self, examples: Mapping[str, Example], seed: int, groups: Mapping[str, str]) -> Manifest:
        """The file's clients that have texts. Raises QuorumError if the file is no partition of these examples."""
        there = {identity: examples[identity] for identity in by_split(examples.values())["train"]}
        assigned = {client: own for client, own in exchange.read(self.file, self.data_sets[0], there).items() if own}
        _check_names(assigned)
        return with_server(assigned, examples)


def _check_names(clients: Iterable[str]) -> None:
    """Refuse a client whose name is reserved, or cannot be a file's."""
    for name in clients:
        if not is_client_name(name):
            raise QuorumError(f"client {name!r}: is taken, or no name; use letters, digits, '_' and '-'")


def with_server(assigned: Mapping[str, list[str]], examples: Mapping[str, Example]) -> Manifest:
    """A manifest of clients with training texts only, and of the server with all other texts."""
    manifest: Manifest = {client: {"train": own, "val": [], "test": []} for client, own in assigned.items()}
    return manifest | {SERVER: by_split(examples.values()) | {"train": []}}
