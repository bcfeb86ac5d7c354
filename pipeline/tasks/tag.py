"""Tagging: a tag for each word, by a linear layer at the word's first token; scored by complete spans.

Spans are counted as in the CoNLL evaluation script. A chunk is (type, first word, last word). It begins at B-X, or at
I-X after O, after another type or at a sentence's start. Tjong Kim Sang and De Meulder, "Introduction to the CoNLL-2003
Shared Task", CoNLL 2003.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.corpora.labelled import Tagged
from pipeline.tasks.task import Metric, Prediction, Scores

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Limits, Prefix, Rendered
    from pipeline.model.encoder import Encoder

OUTSIDE = "O"


class Tag:
    """See `EncoderTask`. A word is one item; words that are not read are outside of every span."""

    kind = Tagged
    metrics = (Metric("f1", "span F1", "F1 x 100", "more", 1, per="spans", sought="true"),)

    def classes(self, examples: Sequence[Tagged]) -> tuple[str, ...]:
        """`O`, and B- and I- of every type, types in alphabetical order."""
        types = sorted({tag[2:] for example in examples for tag in example.tags if tag != OUTSIDE})
        return (OUTSIDE, *(f"{begin}-{kind}" for kind in types for begin in "BI"))

    def render(self, model: Encoder, example: Tagged, classes: Sequence[str], limits: Limits) -> list[Rendered]:
        """The sentence's first tokens; `places` are the first tokens of words, the target their tags' numbers."""
        from pipeline.model.backbone import Rendered

        longest = {"truncation": True, "max_length": limits.source_tokens}
        read = model.tokenizer(list(example.words), is_split_into_words=True, **longest)
        first: dict[int, int] = {}
        for place, word in enumerate(read.word_ids()):
            if word is not None:
                first.setdefault(word, place)
        # A word of characters that the vocabulary lacks may have no token.
        target = tuple(classes.index(example.tags[word]) for word in first)
        ids = tuple(read["input_ids"])
        return [Rendered(ids, target, len(ids), len(ids), tuple(first.values()), tuple(first))]

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        from pipeline.tasks.heads import initial_linears

        return initial_linears({"head.out": (encoder.width, len(classes))}, seed)

    def head_input(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """The states (words, n) of the words' first tokens."""
        import torch

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

    def decide(
        self, encoder: Encoder, example: Tagged, windows: list[Rendered], logits: list[Tensor], classes: Sequence[str]
    ) -> str:
        """The tags of all words, separated by spaces."""
        tags = [OUTSIDE] * len(example.words)
        for word, best in zip(windows[0].words, logits[0].argmax(-1).tolist(), strict=True):
            tags[word] = classes[best]
        return " ".join(tags)

    def score(self, examples: Sequence[Tagged], predictions: Sequence[Prediction], **_: object) -> Scores:
        """`f1` is 200 · right spans and `spans` predicted + true ones: their sums over examples give F1 x 100."""
        counts = [span_counts(e.tags, p.text.split(" ")) for e, p in zip(examples, predictions, strict=True)]
        return [{"f1": 200.0 * right, "spans": named + true, "true": true} for right, named, true in counts]


def chunks(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """The spans of a sentence's tags, as (type, first word, last word).

    >>> sorted(chunks(["B-PER", "I-PER", "O", "I-LOC", "I-ORG"]))
    [('LOC', 3, 3), ('ORG', 4, 4), ('PER', 0, 1)]
    """
    found: set[tuple[str, int, int]] = set()
    kind, first = "", 0
    for place, tag in enumerate([*tags, "O"]):
        begins = tag[:2] == "B-" or (tag[:2] == "I-" and tag[2:] != kind)
        if kind and (begins or tag == "O"):
            found.add((kind, first, place - 1))
            kind = ""
        if begins:
            kind, first = tag[2:], place
    return found


def span_counts(gold: Sequence[str], predicted: Sequence[str]) -> tuple[int, int, int]:
    """Numbers of one sentence's spans: right ones, those of the prediction, and true ones.

    F1 is 2 · right / (predicted + true), each summed over all sentences. Raises ValueError if their lengths differ.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} words, and {len(predicted)} tags were predicted")
    true, named = chunks(gold), chunks(predicted)
    return len(true & named), len(named), len(true)


TASK = Tag()
