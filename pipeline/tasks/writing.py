"""What tasks share whose predictions are written by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.model.decoding_rule import DecodingRule
from pipeline.tasks.task import Prediction

if TYPE_CHECKING:
    from pipeline.model.backbone import Backbone, Prefix, Row


class Writer:
    """See `WriterTask`."""

    def classes(self, examples: Sequence[object]) -> tuple[str, ...]:
        """None: the vocabulary is the model's."""
        return ()

    def predict(
        self, backbone: Backbone, prefixes: Sequence[Prefix], rows: Sequence[Row], rule: DecodingRule
    ) -> list[Prediction]:
        """Decode a text for each row."""
        from pipeline.model.generation import generate

        # A text at the limit has one token less where the model forces the end token there.
        longest = rule.max_tokens - (backbone.end_token_forced is not None)
        written = generate(backbone, prefixes, rows, rule)
        return [Prediction(backbone.text(tokens), len(tokens) < longest) for tokens in written]
