"""Settings of meetings: who the clients are, and how many examples each of them has. One record a kind.

The same records are in params.yaml and in the orders of partitions, where the scale's values replace what is None.
Feng et al., Section V-B1, Fig. 6, is kind `iid`: the data of each domain is divided evenly, and each client gets one
part of each. Section V-B2, Fig. 7, is kind `balanced`: 200 training, 40 validation and 40 test examples of each domain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.clients.manifest import Manifest, by_split, take_at_most, take_fraction
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS, Example, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.errors import QuorumError
from pipeline.workspace.record import Record

Unit = Literal["example", "meeting"]
RESERVED = ("server", "mean", "pooled")  # names that files and tables use themselves
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"

Fraction = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


def is_client_name(name: str) -> bool:
    """Whether a client can have this name. A dot is not allowed: it separates name and kind of an adapter's file."""
    return re.match(NAME, name) is not None and len(name) <= 100 and "." not in name and name not in RESERVED


class Share(Record):
    """How much of each split a client uses; None: the scale's value, and all test examples."""

    train_fraction: Fraction | None = None
    validation_examples: Count | None = None
    test_examples: Count | None = None

    def of(self, splits: Mapping[Split, Sequence[str]], seed: int) -> dict[Split, list[str]]:
        """A share of a client's splits, drawn for each seed."""
        salt = f"{seed}/"
        return {
            "train": take_fraction(splits["train"], self.train_fraction or 1.0, salt),
            "val": take_at_most(splits["val"], self.validation_examples, salt),
            "test": take_at_most(splits["test"], self.test_examples, salt),
        }


class Counts(Record):
    """Number of examples of each split, the same for every client."""

    train: Count
    val: Count
    test: Count


class OfData(Record):
    """The field that all settings have: the data set or data sets, of one task, of which clients have examples."""

    data: str | Annotated[list[str], Field(min_length=1)]

    @property
    def data_sets(self) -> list[str]:
        return [self.data] if isinstance(self.data, str) else self.data


class Limited(OfData):
    """Fields of settings whose clients are named: and limits in tokens, None for the data set's."""

    clients: list[str]
    source_tokens: Annotated[int, Field(ge=16)] | None = None
    target_tokens: Annotated[int, Field(ge=2)] | None = None
    max_tokens: Count | None = None

    @model_validator(mode="after")
    def _once(self) -> Limited:
        if len(set(self.clients)) != len(self.clients):
            raise ValueError("clients: must name each once")
        return self


class Domains(Limited):
    """One client for each domain or corpus, with the corpus's splits; `only`: shares of single clients."""

    kind: Literal["domains"]
    own: bool = True
    train_fraction: Fraction | None = None
    validation_examples: Count | None = None
    only: dict[str, Share] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _of_its_clients(self) -> Domains:
        for name in self.only:
            if name not in self.clients:
                raise ValueError(f"only.{name}: is no client of the setting")
        return self

    def share_of(self, client: str) -> Share:
        """A client's share: its entry in `only`, with the setting's values where that has None."""
        own = self.only.get(client, Share())
        return Share(
            train_fraction=own.train_fraction or self.train_fraction,
            validation_examples=own.validation_examples or self.validation_examples,
            test_examples=own.test_examples,
        )

    @property
    def weights(self) -> dict[str, float]:
        """Client -> the factor that gives it the weight of the setting's fraction, if it has one of its own."""
        shares = {name: share.train_fraction for name, share in self.only.items()}
        others = {name: own for name, own in shares.items() if own and own != self.train_fraction}
        return {name: (self.train_fraction or 1.0) / own for name, own in others.items()}

    def draw(self, examples: Mapping[str, Example], seed: int, groups: Mapping[str, str]) -> Manifest:
        """A fraction of training, a limit on validation, all of test."""
        return {client: self.share_of(client).of(_of_domain(examples, client), seed) for client in self.clients}


class Iid(Limited):
    """Each domain in `of` is dealt out to the clients, one example or one meeting at a time."""

    kind: Literal["iid"]
    of: list[str] = Field(min_length=1)
    unit: Unit = "example"
    train_fraction: Fraction | None = None
    validation_examples: Count | None = None

    @model_validator(mode="after")
    def _named(self) -> Iid:
        for name in self.clients:
            if not is_client_name(name):
                raise ValueError(f"clients: {name!r} is taken, or no name; use letters, digits, '_' and '-'")
        return self

    def draw(self, examples: Mapping[str, Example], seed: int, groups: Mapping[str, str]) -> Manifest:
        """Deal each split of each domain out to the clients, by example as in the paper, or by meeting.

        Domains are scaled before they are dealt, so that the clients together have the examples of kind `domains`.
        """
        manifest: Manifest = {client: {split: [] for split in SPLITS} for client in self.clients}
        share = Share(train_fraction=self.train_fraction, validation_examples=self.validation_examples)
        # Every domain continues with the next client, or the first would get every domain's remainder.
        turns = {split: cycle(self.clients) for split in SPLITS}
        for domain in self.of:
            for split, ids in share.of(_of_domain(examples, domain), seed).items():
                units: dict[str, list[str]] = {}
                for identity in ids:
                    unit = identity if self.unit == "example" else examples[identity].group
                    units.setdefault(unit, []).append(identity)
                for unit in hash_order(list(units), salt=f"{seed}/{domain}/{split}/"):
                    manifest[next(turns[split])][split] += units[unit]
        return manifest


class Balanced(Limited):
    """One client for each domain, all with the same number of examples; a user's client may have fewer."""

    kind: Literal["balanced"]
    counts: Counts

    def draw(self, examples: Mapping[str, Conversation], seed: int, groups: Mapping[str, str]) -> Manifest:
        """Draw `counts` examples of each split of each domain, within the corpus's splits.

        Raises QuorumError if a published domain has fewer examples than that.
        """
        manifest: Manifest = {client: {} for client in self.clients}
        users = users_clients(examples)
        for client in self.clients:
            for split, own in _of_domain(examples, client).items():
                wanted = getattr(self.counts, split)
                if len(own) < wanted and client not in users:
                    raise QuorumError(f"{client} has {len(own)} {split} examples, not {wanted}; lower its counts")
                manifest[client][split] = take_at_most(own, wanted, salt=f"{seed}/")
        return manifest

    def fitted(self, examples: Mapping[str, Conversation]) -> Balanced:
        """With counts that the sample can give: the smallest number that any of its clients has of a split.

        Counts are chosen for real corpora, where a client with fewer examples is a mistake in the counts.
        """
        made_up = [_of_domain(examples, client) for client in self.clients if client not in users_clients(examples)]
        least = {split: min([getattr(self.counts, split), *(len(of[split]) for of in made_up)]) for split in SPLITS}
        return self.model_copy(update={"counts": Counts(**least)})


def users_clients(examples: Mapping[str, Conversation]) -> set[str]:
    """The clients that are a user's, by their examples."""
    return {example.owner for example in examples.values() if example.own}


def _of_domain(examples: Mapping[str, Example], domain: str) -> dict[Split, list[str]]:
    """Split -> ids of a domain's examples."""
    return by_split(example for example in examples.values() if example.owner == domain)


Setting = Annotated[Domains | Iid | Balanced, Field(discriminator="kind")]
