"""Classification: one label a text, by a pooled vector, a hidden layer with ReLU, and a logit for each label."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.corpora.labelled import Labelled
from pipeline.tasks.task import Metric, Prediction, Scores

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Limits, Prefix, Rendered
    from pipeline.model.encoder import Encoder


class Classify:
    """See `EncoderTask`. A text is one item."""

    kind = Labelled
    metrics = (Metric("accuracy", "accuracy", "%", "more", 1),)

    def classes(self, examples: Sequence[Labelled]) -> tuple[str, ...]:
        """All labels, in alphabetical order."""
        return tuple(sorted({example.label for example in examples}))

    def render(self, model: Encoder, example: Labelled, classes: Sequence[str], limits: Limits) -> list[Rendered]:
        """The text's first tokens; the target is its label's number."""
        from pipeline.model.backbone import Rendered

        ids = _cut(model.tokenizer, example.text, limits.source_tokens)
        return [Rendered(tuple(ids), (classes.index(example.label),), len(ids), len(ids))]

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        from pipeline.tasks.heads import initial_linears

        n = encoder.width
        return initial_linears({"head.dense": (n, n), "head.out": (n, len(classes))}, seed)

    def head_input(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """The pooled vector, (1, n), in place of the tokens' states."""
        import torch

        hidden = prefix["hidden"][None]
        return prefix | {"hidden": encoder.pooled(hidden, torch.ones(hidden.shape[:2], dtype=torch.bool))}

    def items(self, prefix: Prefix) -> int:
        return 1

    def outputs(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """Logits (texts, classes)."""
        from pipeline.tasks.heads import applied

        pooled = encoder.pooled(*encoder.states(prefixes, adapter))
        return applied(adapter, "head.out", applied(adapter, "head.dense", pooled).relu())

    def decide(
        self, encoder: Encoder, example: Labelled, windows: list[Rendered], logits: list[Tensor], classes: Sequence[str]
    ) -> str:
        """The label with the largest logit."""
        return classes[int(logits[0][0].argmax())]

    def score(self, examples: Sequence[Labelled], predictions: Sequence[Prediction], **_: object) -> Scores:
        return [{"accuracy": 100.0 * (e.label == p.text)} for e, p in zip(examples, predictions, strict=True)]


def _cut(tokenizer: PreTrainedTokenizerBase, text: str, tokens: int) -> list[int]:
    """The first `tokens` ids of a text, special ones included.

    A word has one id or more, as a rule, so that tokenizing the first `tokens` words is nearly always enough.
    """
    words = re.match(rf"(?:[ \t\r\n]*[^ \t\r\n]+){{0,{tokens}}}", text)
    ids: list[int] = []
    for part in (words[0] if words else "", text):
        ids = tokenizer(part, truncation=True, max_length=tokens)["input_ids"]
        if len(ids) == tokens:
            break
    return ids


TASK = Classify()
