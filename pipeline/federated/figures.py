"""The figures of a training: named numbers of a client or of the server in one round.

A client's figures leave its organisation. An objective and an algorithm declare the figures of theirs, with bounds, and
a server refuses every other figure. The server's figures, and those of callbacks, leave no organisation.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

Figures = Mapping[str, float]  # name -> value


class Bounds(NamedTuple):
    """The least and the largest value that a figure can have; both are included.

    >>> Bounds(0.0, 1.0).contain(1.0), Bounds(0.0).contain(-1.0), Bounds().contain(math.inf)
    (True, False, False)
    """

    least: float = -math.inf
    largest: float = math.inf

    def contain(self, value: float) -> bool:
        """Whether a value is finite and within these bounds."""
        return math.isfinite(value) and self.least <= value <= self.largest


Declared = Mapping[str, Bounds]  # the figures that may leave a client: name -> bounds

SHARE = Bounds(0.0, 1.0)  # a share of a client's items
NATS = Bounds(-1e-3)
"""A loss or an entropy in nats. Its sum in fp32 may round to a number slightly below 0."""

SERVER = "server/"
"""Begins the column of a figure of the server; no client has this name. All rows of a round have the same value."""


def undeclared(figures: Figures, declared: Declared) -> str | None:
    """Which figure is not declared, or is out of its bounds, in a few words; None if there is none."""
    for name in sorted(figures):
        if name not in declared:
            return f"reports {name!r}, which is not a declared figure"
        if not declared[name].contain(figures[name]):
            least, largest = declared[name]
            return f"reports {name} {figures[name]:g}, which is not between {least:g} and {largest:g}"
    return None
