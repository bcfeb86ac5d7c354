"""Writing a title: a text and a request in, a short title out, scored by ROUGE against the writer's title.

Two more figures: the best ROUGE-L against the writer's and the annotators' titles, and `cocoL`, ROUGE-L with β = 1.2
over words split at spaces, which FedNLP's code calls ROUGE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from pipeline.corpora.example import Example, Turn
from pipeline.corpora.texts import Titled
from pipeline.tasks.summarize import Summarize
from pipeline.tasks.task import Metric, Prediction

if TYPE_CHECKING:  # a second, which the plan saves
    from rouge_score.rouge_scorer import RougeScorer

REQUEST = "Write the subject line of this email."
BETA = 1.2


class Title(Summarize):
    """Rendered and predicted like a summary."""

    kind = Titled

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return (
            Metric("rougeL", "R-L", "ROUGE F1 x 100", "more", 2),
            Metric("rouge1", "R-1", "ROUGE F1 x 100", "more", 2),
            Metric("rouge2", "R-2", "ROUGE F1 x 100", "more", 2),
            Metric("best", "R-L, best of four", "ROUGE F1 x 100", "more", 2),
            Metric("coco", "cocoL", "x 100", "more", 2),
            Metric("length", "words", "% of the writer's", None, 1, per="words"),
        )

    def example(self, text: Titled) -> Example:
        """The text in the form of a prompt."""
        turns = (Turn("Email", " ".join(text.text.split())),)
        return Example(text.id, "", text.owner, text.split, text.group, REQUEST, turns, text.title)

    def score(
        self, references: Sequence[str], predictions: Sequence[Prediction], *, use_stemmer: bool
    ) -> list[Mapping[str, float]]:
        """Without annotators' titles; see `score_texts`."""
        from pipeline.tasks.rouge import rouge_of

        written = [prediction.text for prediction in predictions]
        return [
            {name: row[name] for name in ("rougeL", "rouge1", "rouge2")}
            | {
                "coco": 100 * coco(reference, text),
                "length": 100.0 * len(text.split()),
                "words": len(reference.split()),
            }
            for row, reference, text in zip(
                rouge_of(references, written, use_stemmer=use_stemmer), references, written, strict=True
            )
        ]

    def score_texts(self, texts: Sequence[Titled], predictions: Sequence[Prediction]) -> list[Mapping[str, float]]:
        """Every metric of each text."""
        from pipeline.tasks.rouge import rouge_of

        rows = self.score([text.title for text in texts], predictions, use_stemmer=False)
        pairs = [(text.id, r, p.text) for text, p in zip(texts, predictions, strict=True) for r in _titles(text)]
        best: dict[str, float] = {}
        scored = rouge_of([r for _, r, _ in pairs], [p for _, _, p in pairs], use_stemmer=False)
        for (identity, _, _), row in zip(pairs, scored, strict=True):
            best[identity] = max(best.get(identity, 0.0), row["rougeL"])
        return [{**row, "best": best[text.id]} for row, text in zip(rows, texts, strict=True)]


def _titles(text: Titled) -> Sequence[str]:
    """The writer's title and the annotators'."""
    return (text.title, *text.others)


def coco(reference: str, prediction: str) -> float:
    """ROUGE-L as in the scores of COCO's captions: (1 + β²) P R / (R + β² P), β = 1.2, words split at spaces.

    >>> round(coco("meeting moved to friday", "friday meeting moved"), 3)
    0.557
    """
    precision, recall, _ = _scorer().score(reference, prediction)["rougeL"]
    if not precision:
        return 0.0
    return float((1 + BETA**2) * precision * recall / (recall + BETA**2 * precision))


class _AtSpaces:
    """Splits texts at each space, as COCO's scorer does; `rouge_score`'s interface of a tokenizer."""

    def tokenize(self, text: str) -> list[str]:
        """Words, empty ones between two spaces included."""
        return text.split(" ")


@cache
def _scorer() -> RougeScorer:
    """`rouge_score`'s ROUGE-L over words split at spaces."""
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=_AtSpaces())


TASK = Title()
