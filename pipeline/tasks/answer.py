"""Question answering: the begin and end of an answer in a paragraph, by two logits for each token of its windows.

Scores are those of SQuAD 1.1's script (Rajpurkar et al., EMNLP 2016): exact match and F1 of tokens, the best over the
right answers. Windows overlap by half. The answer is the span of at most thirty tokens with the largest sum of logits.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.corpora.labelled import Question
from pipeline.tasks.task import Metric, Prediction, Scores

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Limits, Prefix, Rendered
    from pipeline.model.encoder import Encoder

QUESTION_TOKENS, LONGEST = 64, 30
ELSEWHERE = -1e4  # the logit of a token outside of the context, which gives it probability 0


class _Piece(NamedTuple):
    """A token of the context, and the range of its characters."""

    id: int
    begin: int
    end: int


class Answer:
    """See `EncoderTask`. A window's items are its start and its end; the classes are its tokens."""

    kind = Question
    metrics = (Metric("f1", "F1", "F1 x 100", "more", 1), Metric("exact", "exact match", "%", "more", 1))

    def classes(self, examples: Sequence[Question]) -> tuple[str, ...]:
        return ("start", "end")

    def render(self, model: Encoder, example: Question, classes: Sequence[str], limits: Limits) -> list[Rendered]:
        """The window in which the first answer is most central, then the others."""
        windows = [self._window(model, example, pieces) for pieces in _windows(model, example, limits.source_tokens)]
        answering = [window for window in windows if window.target]
        best = min(answering, key=_off_centre) if answering else windows[0]
        return [best, *(window for window in windows if window is not best)]

    def _window(self, encoder: Encoder, text: Question, pieces: Sequence[_Piece]) -> Rendered:
        """A question and one window of its context; the target is empty where the first answer is not inside."""
        from pipeline.model.backbone import Rendered

        ids, first = encoder.pair(_question(encoder, text), [piece.id for piece in pieces])
        answer, begin = text.answers[0]
        inside = [i for i, p in enumerate(pieces) if p.end > begin and p.begin < begin + len(answer)]
        complete = bool(inside) and pieces[0].begin <= begin and pieces[-1].end >= begin + len(answer)
        target = (first + inside[0], first + inside[-1]) if complete else ()
        return Rendered(tuple(ids), target, len(ids), len(ids), tuple(range(first, first + len(pieces))))

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        from pipeline.tasks.heads import initial_linears

        return initial_linears({"head.out": (encoder.width, len(classes))}, seed)

    def head_input(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """All tokens: an answer can begin or end at each."""
        return prefix

    def items(self, prefix: Prefix) -> int:
        return 2

    def outputs(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """Logits (2 · windows, longest): a row for each window's start, then one for its end."""
        import torch

        from pipeline.tasks.heads import applied

        hidden, _ = encoder.states(prefixes, adapter)
        both = applied(adapter, "head.out", hidden)
        context = torch.zeros(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
        for own, prefix in zip(context, prefixes, strict=True):
            own[prefix["places"]] = True
        return both.masked_fill(~context[..., None], ELSEWHERE).transpose(1, 2).flatten(0, 1)

    def decide(
        self, encoder: Encoder, example: Question, windows: list[Rendered], logits: list[Tensor], classes: Sequence[str]
    ) -> str:
        """The words of the best span of all windows."""
        best, span = -float("inf"), (0, 0)
        by_place = {tuple(window.source): own for window, own in zip(windows, logits, strict=True)}
        for pieces in _windows(encoder, example, max(len(window.source) for window in windows)):
            window = self._window(encoder, example, pieces)
            start, end = (row[list(window.places)] for row in by_place[window.source])
            score, first, last = best_span(start, end)
            if score > best:
                best, span = score, (pieces[first].begin, pieces[last].end)
        return example.context[slice(*span)]

    def score(self, examples: Sequence[Question], predictions: Sequence[Prediction], **_: object) -> Scores:
        """F1 and exact match, x 100, each against the best of the right answers."""
        rows: Scores = []
        for example, made in zip(examples, predictions, strict=True):
            answers = [answer for answer, _ in example.answers]
            exact = max(normal(made.text) == normal(answer) for answer in answers)
            rows.append({"f1": 100.0 * max(token_f1(made.text, one) for one in answers), "exact": 100.0 * exact})
        return rows


def _question(encoder: Encoder, text: Question) -> list[int]:
    """The question's token ids, at most `QUESTION_TOKENS`."""
    ids: list[int] = encoder.tokenizer(text.question, add_special_tokens=False)["input_ids"]
    return ids[:QUESTION_TOKENS]


def _windows(encoder: Encoder, text: Question, tokens: int) -> Iterator[list[_Piece]]:
    """Windows of the context that fit behind the question in `tokens`; each overlaps the one before by half."""
    read = encoder.tokenizer(text.context, add_special_tokens=False, return_offsets_mapping=True)
    pairs = zip(read["input_ids"], read["offset_mapping"], strict=True)
    pieces = [_Piece(identity, begin, end) for identity, (begin, end) in pairs]
    room = max(2, tokens - len(encoder.pair(_question(encoder, text), [])[0]))
    for at in range(0, max(1, len(pieces) - room + room // 2), room // 2):
        yield pieces[at : at + room]


def _off_centre(window: Rendered) -> int:
    """The distance of the answer's middle from the middle of a window's context, in half tokens."""
    return abs(sum(window.target) - window.places[0] - window.places[-1])


def best_span(start: Tensor, end: Tensor) -> tuple[float, int, int]:
    """(sum of logits, s, e) of the best span s <= e < s + 30, by logits (tokens,) each; of equal ones the first."""
    sums = start[:, None] + end[None, :]
    allowed = sums.new_ones(sums.shape).triu().tril(LONGEST - 1).bool()
    place = int(sums.masked_fill(~allowed, -float("inf")).argmax())
    first, last = divmod(place, len(end))
    return float(sums[first, last]), first, last


def normal(text: str) -> str:
    """A text in lower case, without punctuation, articles and extra spaces, as SQuAD's script compares answers."""
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def token_f1(prediction: str, answer: str) -> float:
    """F1 of an answer's words against a right answer's, both in normal form.

    >>> round(token_f1("in 1887 in Paris", "Paris"), 3), round(token_f1("Tower", "Eiffel Tower"), 3)
    (0.4, 0.667)
    """
    given, right = normal(prediction).split(), normal(answer).split()
    common = sum((Counter(given) & Counter(right)).values())
    return 2 * common / (len(given) + len(right)) if common else 0.0


TASK = Answer()
