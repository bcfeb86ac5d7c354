"""Which of a data set's texts are used: all, a number, or a number of each label or owner.

Training texts are drawn for each seed. Development and test texts are the same for all seeds, so that a text's scores
at several seeds can be averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeVar

from pydantic import Field

from pipeline.clients.setting import Count
from pipeline.corpora.example import SPLITS, Example, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.errors import QuorumError
from pipeline.workspace.record import Record


class Take(Record):
    """`count` texts of a split, or `each` of every label or owner; neither: all.

    `largest`: only texts of that many owners, those with the most training texts.
    """

    count: Count | None = None
    each: Count | None = None
    by: Literal["label", "owner"] = "label"
    largest: Count | None = None


class Takes(Record):
    """Which texts of each split are used; None: none."""

    train: Take = Field(default_factory=Take)
    val: Take = Field(default_factory=Take)
    test: Take | None = Field(default_factory=Take)


AnyText = TypeVar("AnyText", bound=Example)


def taken(texts: Mapping[str, AnyText], takes: Takes, seed: int) -> dict[str, AnyText]:
    """The texts that a seed uses, by id, in the order of `texts`.

    Raises:
        QuorumError: a split has no text left.
    """
    used: set[str] = set()
    for split in SPLITS:
        take: Take | None = getattr(takes, split)
        if take is None:
            continue
        own = {identity: text for identity, text in texts.items() if text.split == split}
        chosen = _of_split(own, texts, take, f"{seed}/" if split == "train" else "")
        if not chosen:
            remedy = "raise what is taken of it" if own else f"give some texts the split {split}"
            raise QuorumError(f"{split}: no text is left of {len(own)}; {remedy}")
        used |= chosen
    return {identity: text for identity, text in texts.items() if identity in used}


def _of_split(own: Mapping[str, Example], texts: Mapping[str, Example], take: Take, salt: str) -> set[str]:
    if take.largest is not None:
        owners = set(_largest(texts, take.largest))
        own = {identity: text for identity, text in own.items() if text.owner in owners}
    order = hash_order(list(own), salt)
    if take.each is None:
        return set(order[: take.count])
    counts: Counter[str] = Counter()
    chosen: set[str] = set()
    for identity in order:
        of = own[identity].label if take.by == "label" else own[identity].owner
        counts[of] += 1
        if counts[of] <= take.each:
            chosen.add(identity)
    return set([identity for identity in order if identity in chosen][: take.count])


def _largest(texts: Mapping[str, Example], count: int) -> list[str]:
    """The owners with the most training texts, among those with texts of each split."""
    counts: dict[str, Counter[Split]] = {}
    for text in texts.values():
        counts.setdefault(text.owner, Counter())[text.split] += 1
    there = {text.split for text in texts.values()}
    complete = [owner for owner, splits in counts.items() if all(splits[split] for split in there)]
    return sorted(complete, key=lambda owner: (-counts[owner]["train"], owner))[:count]
