"""Writing a title: a text and a request in, a short title out, scored by ROUGE against the writer's title.

Two more figures: the best ROUGE-L against the writer's and the annotators' titles, and `cocoL`, ROUGE-L with β = 1.2
over words split at spaces, which FedNLP's code calls ROUGE.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from pipeline.corpora.conversation import Conversation, Turn
from pipeline.corpora.labelled import Titled
from pipeline.tasks.task import Metric, Prediction, Scores
from pipeline.tasks.writing import Writer

if TYPE_CHECKING:  # a second, which the plan saves
    from rouge_score.rouge_scorer import RougeScorer

    from pipeline.model.backbone import Backbone, Limits, Rendered

REQUEST = "Write the subject line of this email."
BETA = 1.2


class Title(Writer):
    """See `WriterTask`. A title is written like a summary."""

    kind = Titled
    metrics = (
        Metric("rougeL", "R-L", "ROUGE F1 x 100", "more", 2),
        Metric("rouge1", "R-1", "ROUGE F1 x 100", "more", 2),
        Metric("rouge2", "R-2", "ROUGE F1 x 100", "more", 2),
        Metric("best", "R-L, best of four", "ROUGE F1 x 100", "more", 2),
        Metric("coco", "cocoL", "x 100", "more", 2),
        Metric("length", "words", "% of the writer's", None, 1, per="words"),
    )

    def render(self, model: Backbone, example: Titled, classes: Sequence[str], limits: Limits) -> list[Rendered]:
        """The text in the form of a prompt; see `Backbone.render`."""
        turns = (Turn("Email", " ".join(example.text.split())),)
        about = (example.id, "", example.owner, example.split, example.group)
        return [model.render(Conversation(*about, REQUEST, turns, example.title), limits)]

    def score(
        self, examples: Sequence[Titled], predictions: Sequence[Prediction], *, use_stemmer: bool, rouge_tokens: str
    ) -> Scores:
        from pipeline.tasks.rouge import rouge_of, words_of

        written = [prediction.text for prediction in predictions]
        titles = [example.title for example in examples]
        of_writer = rouge_of(titles, written, use_stemmer=use_stemmer, tokens=rouge_tokens)
        pairs = [(title, text) for e, text in zip(examples, written, strict=True) for title in e.others]
        others, texts = [title for title, _ in pairs], [text for _, text in pairs]
        of_others = iter(rouge_of(others, texts, use_stemmer=use_stemmer, tokens=rouge_tokens))
        return [
            {name: row[name] for name in ("rougeL", "rouge1", "rouge2")}
            | {
                "coco": 100 * coco(example.title, text),
                "length": 100.0 * len(words_of(text, rouge_tokens)),
                "words": len(words_of(example.title, rouge_tokens)),
                "best": max([row["rougeL"], *(next(of_others)["rougeL"] for _ in example.others)]),
            }
            for example, row, text in zip(examples, of_writer, written, strict=True)
        ]


def coco(reference: str, prediction: str) -> float:
    """ROUGE-L as in the scores of COCO's captions: (1 + β²) P R / (R + β² P), β = 1.2, words split at spaces.

    >>> round(coco("meeting moved to friday", "friday meeting moved"), 3)
    0.557
    """
    precision, recall, _ = _scorer().score(reference, prediction)["rougeL"]
    return float((1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)) if precision else 0.0


class _AtSpaces:
    """A tokenizer of `rouge_score` that splits at each space, as COCO's scorer does; so some words are empty."""

    def tokenize(self, text: str) -> list[str]:
        return text.split(" ")


@cache
def _scorer() -> RougeScorer:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=_AtSpaces())


TASK = Title()
