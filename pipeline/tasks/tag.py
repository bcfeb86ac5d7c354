"""Tagging: a tag for each word, by a linear layer at the word's first token; scored by complete spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.corpora.texts import Tagged
from pipeline.tasks.task import Metric

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Prefix, Rendered
    from pipeline.model.encoder import Encoder

OUTSIDE = "O"


class Tag:
    """See `EncoderTask`. A word is one item; words that are not read are outside of every span."""

    kind = Tagged
    metrics = (Metric("f1", "span F1", "F1 x 100", "more", 1, per="spans", sought="true"),)

    def classes(self, texts: Sequence[Tagged]) -> tuple[str, ...]:
        """`O`, and B- and I- of every type, types in alphabetical order."""
        types = sorted({tag[2:] for text in texts for tag in text.tags if tag != OUTSIDE})
        return (OUTSIDE, *(f"{begin}-{kind}" for kind in types for begin in "BI"))

    def render(self, encoder: Encoder, text: Tagged, classes: Sequence[str], tokens: int) -> list[Rendered]:
        """The sentence's first tokens; `places` are the first tokens of words, the target their tags' numbers."""
        from pipeline.model.backbone import Rendered

        read = encoder.tokenizer(list(text.words), is_split_into_words=True, truncation=True, max_length=tokens)
        first: dict[int, int] = {}
        for place, word in enumerate(read.word_ids()):
            if word is not None:
                first.setdefault(word, place)
        # A word of characters that the vocabulary lacks may have no token.
        target = tuple(classes.index(text.tags[word]) for word in first)
        ids = tuple(read["input_ids"])
        return [Rendered(ids, target, len(ids), len(ids), tuple(first.values()), tuple(first))]

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        """`head.out` (classes, n)."""
        from pipeline.tasks.heads import initial_linears

        return initial_linears({"head.out": (encoder.width, len(classes))}, seed)

    def head_input(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """The states (words, n) of the words' first tokens."""
        import torch

        del encoder
        places = prefix["places"]
        return prefix | {"hidden": prefix["hidden"][places], "places": torch.arange(len(places))}

    def items(self, prefix: Prefix) -> int:
        """One for each word that is read."""
        return len(prefix["places"])

    def outputs(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """Logits (words, classes)."""
        import torch

        from pipeline.tasks.heads import applied

        hidden, _ = encoder.states(prefixes, adapter)
        words = torch.cat([own[prefix["places"]] for own, prefix in zip(hidden, prefixes, strict=True)])
        return applied(adapter, "head.out", words)

    def predict(
        self,
        encoder: Encoder,
        text: Tagged,
        windows: Sequence[Rendered],
        logits: Sequence[Tensor],
        classes: Sequence[str],
    ) -> str:
        """The tags of all words, separated by spaces."""
        del encoder
        tags = [OUTSIDE] * len(text.words)
        for word, best in zip(windows[0].words, logits[0].argmax(-1).tolist(), strict=True):
            tags[word] = classes[best]
        return " ".join(tags)

    def score(self, text: Tagged, prediction: str) -> Mapping[str, float]:
        """`f1` is 200 · right spans and `spans` predicted + true ones: their sums over texts give F1 x 100."""
        from pipeline.tasks.spans import span_counts

        right, named, true = span_counts(text.tags, prediction.split(" "))
        return {"f1": 200.0 * right, "spans": named + true, "true": true}


TASK = Tag()
