"""A setting: who the clients are, and how many examples each of them has. One record a kind; see `clients.kinds`.

The same records are in params.yaml and in the orders of partitions, where the scale's values replace what is None.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.workspace.record import Record

Unit = Literal["example", "meeting"]
RESERVED = ("server", "mean", "pooled")
"""Names that files and tables use themselves."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"

Fraction = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1)]


def is_client_name(name: str) -> bool:
    """Whether a client can have this name. A dot is not allowed: it separates name and kind of an adapter's file."""
    return re.match(NAME, name) is not None and "." not in name and name not in RESERVED


class Share(Record):
    """How much of each split a client uses; None: the scale's value, and all test examples."""

    train_fraction: Fraction | None = None
    validation_examples: Count | None = None
    test_examples: Count | None = None


class Counts(Record):
    """Number of examples of each split, the same for every client."""

    train: Count
    val: Count
    test: Count


class OfData(Record):
    """The field that all settings have: the data set or data sets, of one task, of which clients have examples."""

    data: str | list[str]

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


class Balanced(Limited):
    """One client for each domain, all with the same number of examples."""

    kind: Literal["balanced"]
    counts: Counts


Setting = Annotated[Domains | Iid | Balanced, Field(discriminator="kind")]
