"""The threshold τ: how sure a teacher has to be of a token for it to be distilled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, PlainSerializer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Threshold:
    """Either an entropy in nats, or that quantile of the teacher's entropies on a client's training tokens.

    >>> str(Threshold.parse(5)), str(Threshold.parse("q0.88"))
    ('5.0', 'q0.88')
    """

    nats: float = math.inf
    quantile: float | None = None

    @classmethod
    def parse(cls, value: object) -> Threshold:
        """A number of nats, or `q0.88`.

        Raises:
            ValueError: it is neither.
        """
        if isinstance(value, Threshold):
            return value
        if isinstance(value, str) and value.startswith("q"):
            share = _number(value[1:])
            if not 0 < share < 1:
                raise ValueError("a quantile is q and a number between 0 and 1, as in q0.88")
            return cls(quantile=share)
        number = _number(value)
        if not 0 <= number < math.inf:
            raise ValueError("is a number of nats, at least 0 and finite, or a quantile as in q0.88")
        return cls(number)

    @property
    def plain(self) -> float | str:
        """As params.yaml has it."""
        return self.nats if self.quantile is None else f"q{self.quantile!r}"

    def __str__(self) -> str:
        return str(self.plain)

    def in_nats(self, entropies: Callable[[], Tensor]) -> Threshold:
        """The same threshold in nats.

        Args:
            entropies: the teacher's, (tokens,); asked for only where they are needed.
        """
        if self.quantile is None:
            return self
        return Threshold(float(entropies().double().quantile(self.quantile)))


EVERY_TOKEN = Threshold()
"""Above every entropy."""


def _number(value: object) -> float:
    try:
        return math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


Tau = Annotated[Threshold, BeforeValidator(Threshold.parse), PlainSerializer(lambda tau: tau.plain)]
"""A threshold as a knob."""
