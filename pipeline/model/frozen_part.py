"""The frozen part of an encoder, and what trains above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Above = Literal["layers", "bottleneck", "lora"]
"""What trains above the frozen part: its layers in full, bottleneck adapters or LoRA."""


@dataclass(frozen=True)
class FrozenPart:
    """The lowest `layers` of an encoder and its embeddings; with `embeddings` false nothing is frozen."""

    embeddings: bool
    layers: int

    @classmethod
    def parse(cls, text: str) -> FrozenPart:
        """The frozen part that FedNLP calls `none`, `e`, `e,0` or `e,0-3`.

        >>> FrozenPart.parse("none"), FrozenPart.parse("e,0-4")
        (FrozenPart(embeddings=False, layers=0), FrozenPart(embeddings=True, layers=5))
        >>> [str(FrozenPart.parse(text)) for text in ("none", "e", "e,0", "e,0-1")]
        ['none', 'e', 'e,0', 'e,0-1']

        Raises ValueError if the text is none of these.
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
