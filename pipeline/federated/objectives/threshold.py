"""The threshold τ on the entropy of a teacher's prediction, below which a token is distilled (Feng et al., Eq. 8)."""

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
    """Either an entropy in nats, or a quantile of the teacher's entropies on a client's training tokens.

    Attributes:
        nats: the entropy; infinity if a quantile is given, or if every token is distilled.
        quantile: in (0, 1); None if the entropy is given.

    >>> str(Threshold.parse(5)), str(Threshold.parse("q0.88"))
    ('5.0', 'q0.88')
    """

    nats: float = math.inf
    quantile: float | None = None

    @classmethod
    def parse(cls, value: object) -> Threshold:
        """Parse a number of nats, or a quantile as in `q0.88`. Raises ValueError if the value is neither."""
        if isinstance(value, Threshold):
            return value
        quantile = isinstance(value, str) and value.startswith("q")
        try:
            number = math.nan if isinstance(value, bool) else float(str(value).removeprefix("q"))
        except ValueError:
            number = math.nan
        if quantile and 0 < number < 1:
            return cls(quantile=number)
        if not quantile and 0 <= number < math.inf:
            return cls(number)
        raise ValueError("is a number of nats, at least 0 and finite, or a quantile between 0 and 1, as in q0.88")

    @property
    def plain(self) -> float | str:
        """The threshold as in params.yaml."""
        return self.nats if self.quantile is None else f"q{self.quantile!r}"

    def __str__(self) -> str:
        return str(self.plain)

    def in_nats(self, entropies: Callable[[], Tensor]) -> Threshold:
        """The same threshold in nats; only for a quantile are the teacher's entropies (tokens,) computed."""
        if self.quantile is None:
            return self
        return Threshold(float(entropies().double().quantile(self.quantile)))


EVERY_TOKEN = Threshold()  # a threshold above every entropy

Tau = Annotated[Threshold, BeforeValidator(Threshold.parse), PlainSerializer(lambda tau: tau.plain)]
"""A threshold as a hyperparameter in params.yaml."""
