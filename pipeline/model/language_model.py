"""What both families of frozen language models have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from pipeline.model.frozen_linear import freeze_linear_layers
from pipeline.model.lora import projections
from pipeline.model.precision import Precision, Products, products_in


class LanguageModel:
    """A frozen model, its tokenizer, and its decoder layers, of which the top ones are adapted; see `Backbone`.

    Args:
        model: transformers' own, in fp32.
        adapted: how many decoder layers are adapted.
    """

    width: int
    _layers: Any
    """The decoder layers, from below."""

    def __init__(
        self,
        name: str,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        adapted: int,
        precision: Precision = "fp32",
    ) -> None:
        self.name, self.precision = name, precision
        self.model: Any = model.eval().requires_grad_(False)
        self.tokenizer: Any = tokenizer
        freeze_linear_layers(self.model, precision)
        self.device = torch.device(model.device)
        self.vocabulary: int = model.config.vocab_size
        self.end_token: int = tokenizer.eos_token_id
        self._configure(model.config)
        self.adapted_layers = range(len(self._layers) - adapted, len(self._layers))

    def _configure(self, config: Any) -> None:
        """Set what depends on the family, `width` among it."""
        raise NotImplementedError

    def lora_shapes(self) -> dict[str, tuple[int, int]]:
        """See `Backbone`; the store ends with the first adapted layer, so LoRA acts above it."""
        return projections(self._layers, self.adapted_layers[1:])

    def text(self, tokens: Sequence[int]) -> str:
        """See `Backbone`."""
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text.strip()

    def _ids(self, text: str) -> list[int]:
        """Token ids of a text; a transcript that spells a special token does not get one."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    def _products(self) -> Products:
        """A context in which products are taken in the model's precision."""
        return products_in(self.precision, self.device)
