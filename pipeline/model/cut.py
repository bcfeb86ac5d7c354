"""Where an encoder is cut, and what trains above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Above = Literal["layers", "bottleneck", "lora"]
"""What trains above a cut."""


@dataclass(frozen=True)
class Cut:
    """Where an encoder's frozen part ends: after so many layers; with `embeddings` false not even they are frozen."""

    embeddings: bool
    layers: int

    @classmethod
    def parse(cls, text: str) -> Cut:
        """`none`, `e`, `e,0`, `e,0-3`: FedNLP's names.

        >>> Cut.parse("none"), Cut.parse("e,0-4")
        (Cut(embeddings=False, layers=0), Cut(embeddings=True, layers=5))
        >>> [str(Cut.parse(text)) for text in ("none", "e", "e,0", "e,0-1")]
        ['none', 'e', 'e,0', 'e,0-1']

        Raises:
            ValueError: it is none of these.
        """
        head, _, span = text.partition(",")
        if text in ("none", "e"):
            return cls(text == "e", 0)
        first, _, last = span.partition("-")
        if head != "e" or first != "0" or not (last or "0").isdigit():
            raise ValueError(f"{text!r}: write none, e, e,0 or e,0-K, where K is the last frozen layer")
        return cls(True, int(last or 0) + 1)

    def __str__(self) -> str:
        if not self.layers:
            return "e" if self.embeddings else "none"
        return "e,0" if self.layers == 1 else f"e,0-{self.layers - 1}"
