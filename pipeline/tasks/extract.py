"""Extractive summarization: each unit of a document is in its extract or not; the best units are its summary.

Units are encoded one by one by a frozen encoder, and their mean vectors are stored. `tasks.extractor` above them trains
from scratch. The loss of a unit is the cross-entropy of its label. The summary has the units of the highest scores,
none of which shares three words in a row with a better one, in the document's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.corpora.documents import Document
from pipeline.errors import QuorumError
from pipeline.tasks.task import Metric, Prediction, Scores

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Limits, Prefix, Rendered
    from pipeline.model.encoder import Encoder

NAMES = {"rouge1": "1", "rouge2": "2", "rougeLsum": "L", "rougeL": "L whole"}
PLACES = 10  # Fig. 3 of FedSum counts the first ten places one by one.


class Extract:
    """See `EncoderTask`. A unit is one item, with the classes out and in."""

    kind = Document
    metrics = (
        *(Metric(name, f"R-F-{short}", "ROUGE F1 x 100", "more", 2) for name, short in NAMES.items()),
        *(
            Metric(f"{name}_recall", f"R-R-{short}", "ROUGE recall x 100", "more", 2, ranked=False)
            for name, short in NAMES.items()
        ),
        Metric("words", "words", "words", None, 1, ranked=False),
    )

    def classes(self, examples: Sequence[Document]) -> tuple[str, ...]:
        return ("out", "in")

    def render(self, model: Encoder, example: Document, classes: Sequence[str], limits: Limits) -> list[Rendered]:
        """The first units that fit as a whole into `source_tokens`, at least one; `places` are their first tokens."""
        from pipeline.model.backbone import Rendered

        longest = {"truncation": True, "max_length": limits.source_tokens}
        tokenized = model.tokenizer(list(example.units), **longest)["input_ids"]
        ids: list[int] = []
        places: list[int] = []
        for unit in tokenized:
            if ids and len(ids) + len(unit) > limits.source_tokens:
                break
            places.append(len(ids))
            ids += unit
        count = len(places)
        total = sum(map(len, tokenized))
        return [Rendered(tuple(ids), example.labels_of(count), total, len(ids), tuple(places), apart=True)]

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        """θ and ω. Raises QuorumError if a part of the encoder would train."""
        from pipeline.tasks.extractor import initial_extractor

        if encoder.trained or encoder.stores_tokens:
            raise QuorumError(
                f"frozen: {encoder.frozen}: extract reads vectors of a frozen encoder; freeze all its layers"
            )
        return initial_extractor(encoder.width, seed)

    def head_input(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """The units' mean vectors (units, n), not normalized, in place of their tokens' states."""
        import torch

        parts = torch.tensor_split(prefix["hidden"], prefix["places"].tolist()[1:])
        vectors = torch.stack([part.mean(0) for part in parts])
        return prefix | {"hidden": vectors, "places": torch.arange(len(vectors))}

    def items(self, prefix: Prefix) -> int:
        return len(prefix["places"])

    def outputs(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """Logits (units, 2)."""
        return self.states_and_logits(encoder, prefixes, adapter)[:, -2:]

    def states_and_logits(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """H, the states before ω, then the logits: (units, width + 2)."""
        import torch

        from pipeline.tasks.extractor import unit_logits, unit_states

        states = unit_states([prefix["hidden"] for prefix in prefixes], adapter)
        return torch.cat([states, unit_logits(states, adapter)], 1)

    def decide(
        self, encoder: Encoder, example: Document, windows: list[Rendered], logits: list[Tensor], classes: Sequence[str]
    ) -> str:
        """The chosen units, one a line."""
        return summary_of(example, (logits[0][:, 1] - logits[0][:, 0]).tolist())

    def score(
        self, examples: Sequence[Document], predictions: Sequence[Prediction], *, use_stemmer: bool, rouge_tokens: str
    ) -> Scores:
        """ROUGE against the reference with the best F1 of single words, to four digits: results are committed."""
        from pipeline.tasks.rouge import rouge_of

        pairs = [(r, p.text) for e, p in zip(examples, predictions, strict=True) for r in e.references]
        texts = zip(*pairs, strict=True) if pairs else ([], [])
        scored = iter(rouge_of(*texts, use_stemmer=use_stemmer, tokens=rouge_tokens, recall=True))
        rows = [max((next(scored) for _ in example.references), key=lambda row: row["rouge1"]) for example in examples]
        names = [metric.name for metric in self.metrics if metric.name != "words"]
        return [
            {name: round(row[name], 4) for name in names} | {"words": len(made.text.split())}
            for row, made in zip(rows, predictions, strict=True)
        ]

    def places(self, predicted: Iterable[tuple[Document, str]]) -> list[int]:
        """How many chosen units are at each of the first places of their documents, and last at all others."""
        counts = [0] * (PLACES + 1)
        for example, text in predicted:
            place = -1
            for unit in text.split("\n"):  # in the document's order
                place = example.units.index(unit, place + 1)
                counts[min(place, PLACES)] += 1
        return counts


def summary_of(document: Document, scores: Sequence[float]) -> str:
    """The chosen units, one a line; `scores`: of the units that are read."""
    return "\n".join(document.units[place] for place in select(document.units, scores, document.count(len(scores))))


def select(units: Sequence[str], scores: Sequence[float], count: int) -> list[int]:
    """The places of the best units, at most `count`, in the document's order; the first of equal scores.

    A unit that shares a trigram of words with a chosen one is passed over.
    """
    chosen: list[int] = []
    taken: set[tuple[str, ...]] = set()
    for place in sorted(range(len(scores)), key=lambda i: -scores[i]):
        words = units[place].split()
        own = {tuple(words[i : i + 3]) for i in range(len(words) - 2)}
        if len(chosen) < count and not own & taken:
            chosen.append(place)
            taken |= own
    return sorted(chosen)


TASK = Extract()
