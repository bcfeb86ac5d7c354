"""A setting: who the clients are, and how much each of them holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["domains", "iid", "balanced"]
Unit = Literal["example", "meeting"]


@dataclass(frozen=True)
class Share:
    """How much of a client's splits is taken; None of a count: all."""

    train_fraction: float = 1.0
    validation_examples: int | None = None
    test_examples: int | None = None


@dataclass(frozen=True)
class Counts:
    """So many examples of each split, the same for every client."""

    train: int
    val: int
    test: int


@dataclass(frozen=True)
class Setting:
    """What a partition is made from.

    `of`: the domains that `iid` cuts up (`clients` are the parts). `unit`: what `iid` deals out. `counts`: what
    `balanced` draws for each client. `only`: a share of a client's own, where it differs from `share`.
    """

    kind: Kind
    clients: list[str]
    share: Share = field(default_factory=Share)
    of: list[str] = field(default_factory=list)
    unit: Unit = "example"
    counts: Counts | None = None
    only: dict[str, Share] = field(default_factory=dict)
