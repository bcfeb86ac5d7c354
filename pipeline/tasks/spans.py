"""Named entities as spans of words, counted as in the CoNLL evaluation script.

A chunk is (type, first word, last word). It begins at B-X, or at I-X after O, after another type or at a sentence's
start. Tjong Kim Sang and De Meulder, "Introduction to the CoNLL-2003 Shared Task", CoNLL 2003.
"""

from __future__ import annotations

from collections.abc import Sequence


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

    F1 is 2 · right / (predicted + true), each summed over all sentences.

    Raises:
        ValueError: the sentences differ in length.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} words, and {len(predicted)} tags were predicted")
    true, named = chunks(gold), chunks(predicted)
    return len(true & named), len(named), len(true)
