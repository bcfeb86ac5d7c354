"""Writing: a text for each row, decoded by a language model."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.model.backbone import Backbone, Prefix, Row
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.generation import generate
from pipeline.tasks.task import Prediction


def write(backbone: Backbone, prefixes: Sequence[Prefix], rows: Sequence[Row], rule: DecodingRule) -> list[Prediction]:
    """Decode a text for each row."""
    # A summary at the limit has one token less where the model forces the end token there.
    longest = rule.max_tokens - (backbone.end_token_forced is not None)
    written = generate(backbone, prefixes, rows, rule)
    return [Prediction(backbone.text(tokens), len(tokens) < longest) for tokens in written]
