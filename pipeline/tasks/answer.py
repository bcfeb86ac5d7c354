"""Question answering: where in a paragraph the answer begins and ends, by two logits a token of its windows.

Scores are those of SQuAD 1.1's script: exact match and F1 of tokens, the best of the right answers. Windows overlap by
half; the answer is the span with the largest sum of logits over all of them, of at most thirty tokens.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.corpora.texts import Question
from pipeline.tasks.task import Metric

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Prefix, Rendered
    from pipeline.model.encoder import Encoder

QUESTION_TOKENS, LONGEST = 64, 30
ELSEWHERE = -1e4
"""The logit of what is no token of the context: its probability is 0."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True)
class _Piece:
    """A token of the context, and the characters that it stands for."""

    id: int
    begin: int
    end: int


class Answer:
    """See `EncoderTask`. The items of a window are its start and its end, the classes its tokens."""

    kind = Question
    metrics = (
        Metric("f1", "F1", "F1 x 100", "more", 1),
        Metric("exact", "exact match", "%", "more", 1),
    )

    def classes(self, texts: Sequence[Question]) -> tuple[str, ...]:
        del texts
        return ("start", "end")

    def render(self, encoder: Encoder, text: Question, classes: Sequence[str], tokens: int) -> list[Rendered]:
        """The window that holds the first answer most centrally, then all, which overlap by half."""
        del classes
        windows = [self._window(encoder, text, own) for own in _windows(encoder, text, tokens)]
        held = [window for window in windows if window.target]
        best = min(held, key=_off_centre) if held else windows[0]
        return [best, *(window for window in windows if window is not best)]

    def _window(self, encoder: Encoder, text: Question, pieces: Sequence[_Piece]) -> Rendered:
        from pipeline.model.backbone import Rendered

        ids, first = encoder.pair(_question(encoder, text), [piece.id for piece in pieces])
        answer, begin = text.answers[0]
        inside = [i for i, p in enumerate(pieces) if p.end > begin and p.begin < begin + len(answer)]
        whole = bool(inside) and pieces[0].begin <= begin and pieces[-1].end >= begin + len(answer)
        target = (first + inside[0], first + inside[-1]) if whole else ()
        return Rendered(tuple(ids), target, len(ids), len(ids), tuple(range(first, first + len(pieces))))

    def initial(self, encoder: Encoder, classes: Sequence[str], seed: int) -> Adapter:
        from pipeline.tasks.heads import initial_linears

        return initial_linears({"head.out": (encoder.width, len(classes))}, seed)

    def kept(self, encoder: Encoder, prefix: Prefix) -> Prefix:
        """Every token: each is asked whether an answer begins or ends there."""
        del encoder
        return prefix

    def items(self, prefix: Prefix) -> int:
        """A window's start and its end."""
        del prefix
        return 2

    def outputs(self, encoder: Encoder, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """Two rows a window, of its start and its end: (2 · windows, longest)."""
        import torch

        from pipeline.tasks.heads import applied

        hidden, _ = encoder.states(prefixes, adapter)
        both = applied(adapter, "head.out", hidden)
        asked = torch.zeros(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
        for own, prefix in zip(asked, prefixes, strict=True):
            own[prefix["places"]] = True
        return both.masked_fill(~asked[..., None], ELSEWHERE).transpose(1, 2).flatten(0, 1)

    def predict(
        self,
        encoder: Encoder,
        text: Question,
        windows: Sequence[Rendered],
        logits: Sequence[Tensor],
        classes: Sequence[str],
    ) -> str:
        del classes
        best, span = -float("inf"), (0, 0)
        by_place = {tuple(window.source): own for window, own in zip(windows, logits, strict=True)}
        for pieces in _windows(encoder, text, max(len(window.source) for window in windows)):
            window = self._window(encoder, text, pieces)
            start, end = (row[list(window.places)] for row in by_place[window.source])
            score, first, last = best_span(start, end)
            if score > best:
                best, span = score, (pieces[first].begin, pieces[last].end)
        return text.context[span[0] : span[1]]

    def score(self, text: Question, prediction: str) -> Mapping[str, float]:
        answers = [answer for answer, _ in text.answers]
        return {
            "f1": 100.0 * max(token_f1(prediction, answer) for answer in answers),
            "exact": 100.0 * max(normal(prediction) == normal(answer) for answer in answers),
        }


def _question(encoder: Encoder, text: Question) -> list[int]:
    ids: list[int] = encoder.tokenizer(text.question, add_special_tokens=False)["input_ids"]
    return ids[:QUESTION_TOKENS]


def _windows(encoder: Encoder, text: Question, tokens: int) -> Iterator[list[_Piece]]:
    """The context's tokens, so many at a time as fit beside the question; each window half over the one before."""
    read = encoder.tokenizer(text.context, add_special_tokens=False, return_offsets_mapping=True)
    pairs = zip(read["input_ids"], read["offset_mapping"], strict=True)
    pieces = [_Piece(identity, begin, end) for identity, (begin, end) in pairs]
    room = max(2, tokens - len(encoder.pair(_question(encoder, text), [])[0]))
    at = 0
    while True:
        yield pieces[at : at + room]
        if at + room >= len(pieces):
            return
        at += room // 2


def _off_centre(window: Rendered) -> int:
    """How far the answer is from the middle of a window's context, in half tokens."""
    return abs(sum(window.target) - window.places[0] - window.places[-1])


def best_span(start: Tensor, end: Tensor) -> tuple[float, int, int]:
    """(logits' sum, first, last) of the best s <= e < s + 30; of equals, the first."""
    sums = start[:, None] + end[None, :]
    allowed = sums.new_ones(sums.shape).triu().tril(LONGEST - 1).bool()
    place = int(sums.masked_fill(~allowed, -float("inf")).argmax())
    first, last = divmod(place, len(end))
    return float(sums[first, last]), first, last


def normal(text: str) -> str:
    """Lower case, without punctuation, articles and superfluous spaces, as SQuAD's script compares answers."""
    plain = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def token_f1(prediction: str, answer: str) -> float:
    """F1 of the tokens that two answers have in common.

    >>> round(token_f1("in 1887 in Paris", "Paris"), 3), round(token_f1("Tower", "Eiffel Tower"), 3)
    (0.4, 0.667)
    """
    given, right = normal(prediction).split(), normal(answer).split()
    common = sum((Counter(given) & Counter(right)).values())
    return 2 * common / (len(given) + len(right)) if common else 0.0


TASK = Answer()
