"""Query-based summarization: turns of a meeting and a query in, a summary out, scored by ROUGE, similarity and form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.corpora.conversation import Conversation
from pipeline.tasks.task import Metric, Prediction, Scores
from pipeline.tasks.writing import Writer

if TYPE_CHECKING:
    from pipeline.model.backbone import Backbone, Limits, Rendered

NGRAM = 4  # words of an n-gram whose repetition is counted


class Summarize(Writer):
    """See `WriterTask`."""

    kind = Conversation
    metrics = (
        Metric("average", "average ROUGE", "F1 x 100", "more", 2),
        *(Metric(f"rouge{n}", f"R-{n}", "ROUGE F1 x 100", "more", 2) for n in ("1", "2", "L", "Lsum")),
        Metric("similarity", "similarity", "cosine", "more", 3),
        Metric("length", "words (over the reference's)", "words", None, 1, over="reference_length"),
        Metric("repetition", "repeated 4-grams, %", "%", "less", 1, ranked=False),
        Metric("at_limit", "cut at the limit, %", "%", "less", 1, ranked=False),
    )

    def render(self, model: Backbone, example: Conversation, classes: Sequence[str], limits: Limits) -> list[Rendered]:
        return [model.render(example, limits)]

    def score(
        self,
        examples: Sequence[Conversation],
        predictions: Sequence[Prediction],
        *,
        use_stemmer: bool,
        rouge_tokens: str,
    ) -> Scores:
        """ROUGE, cosine of sentence embeddings, words, repeated 4-grams, and whether the limit ended it (0 or 100)."""
        from pipeline.tasks.rouge import rouge_of, words_of
        from pipeline.tasks.similarity import similarities

        references = [example.target for example in examples]
        texts = [prediction.text for prediction in predictions]
        rouge = rouge_of(references, texts, use_stemmer=use_stemmer, tokens=rouge_tokens)
        words, of_references = ([words_of(text, rouge_tokens) for text in own] for own in (texts, references))
        rows = zip(rouge, similarities(references, texts), words, of_references, predictions, strict=True)
        return [
            {
                **scores,
                "similarity": cosine,
                "length": len(own),
                "reference_length": len(reference),
                "repetition": repetition(" ".join(own)),
                "at_limit": 0.0 if made.ended else 100.0,
            }
            for scores, cosine, own, reference, made in rows
        ]


def repetition(text: str) -> float:
    """The percentage of a text's 4-grams of words that occur earlier in it; 0 below five words."""
    words = text.lower().split()
    ngrams = [tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)]
    return 100.0 * (1 - len(set(ngrams)) / len(ngrams)) if ngrams else 0.0


TASK = Summarize()
