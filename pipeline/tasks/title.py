"""Writing a title: a text and a request in, a short title out, judged by ROUGE against the writer's own.

Beside it stand the best of the writer's and the annotators' titles, and `cocoL`: ROUGE-L with β = 1.2 over words split
at spaces, which FedNLP's code calls ROUGE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.corpora.example import Example, Turn
from pipeline.corpora.texts import Titled
from pipeline.tasks.summarize import Summarize
from pipeline.tasks.task import Metric, Prediction

REQUEST = "Write the subject line of this email."
BETA = 1.2


class Title(Summarize):
    """Rendered, predicted and headed like a summary."""

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
        """The text as a prompt shows it."""
        turns = (Turn("Email", " ".join(text.text.split())),)
        return Example(text.id, "", text.owner, text.split, text.group, REQUEST, turns, text.title)

    def score(
        self, references: Sequence[str], predictions: Sequence[Prediction], *, use_stemmer: bool
    ) -> list[Mapping[str, float]]:
        """Without annotators' titles; see `score_texts`."""
        from pipeline.tasks.rouge import rouge_of

        made = [prediction.text for prediction in predictions]
        return [
            {name: row[name] for name in ("rougeL", "rouge1", "rouge2")}
            | {
                "coco": 100 * coco(reference, text),
                "length": 100.0 * len(text.split()),
                "words": len(reference.split()),
            }
            for row, reference, text in zip(
                rouge_of(references, made, use_stemmer=use_stemmer), references, made, strict=True
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
    return (text.title, *text.others)


def coco(reference: str, prediction: str) -> float:
    """ROUGE-L as COCO's captions are judged: (1 + β²) P R / (R + β² P), β = 1.2, words split at spaces.

    >>> round(coco("meeting moved to friday", "friday meeting moved"), 3)
    0.557
    """
    given, right = prediction.split(" "), reference.split(" ")
    common = _longest_common(given, right)
    if not common:
        return 0.0
    precision, recall = common / len(given), common / len(right)
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def _longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = row
        row = [0]
        for place, own in enumerate(other):
            row.append(before[place] + 1 if word == own else max(before[place + 1], row[-1]))
    return row[-1]


TASK = Title()
