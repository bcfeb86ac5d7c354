"""Which of a data set's texts are used: all, so many, or so many of each label or owner.

Training texts are drawn anew for each seed. Those that runs are judged on are the same for all seeds, so that what one
text got at several seeds can be averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeVar

from pydantic import Field

from pipeline.clients.setting import Count
from pipeline.corpora.example import SPLITS, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.texts import Text
from pipeline.errors import QuorumError
from pipeline.workspace.record import Record


class Take(Record):
    """Of a split `count` texts, or `each` of every label or owner; neither: all.

    `largest`: of so many owners alone, those with the most training texts.
    """

    count: Count | None = None
    each: Count | None = None
    by: Literal["label", "owner"] = "label"
    largest: Count | None = None


class Takes(Record):
    """What is taken of each split; None: nothing."""

    train: Take = Field(default_factory=Take)
    val: Take = Field(default_factory=Take)
    test: Take | None = Field(default_factory=Take)


AnyText = TypeVar("AnyText", bound=Text)


def taken(texts: Mapping[str, AnyText], takes: Takes, seed: int) -> dict[str, AnyText]:
    """The texts that a seed uses, in their own order.

    Raises:
        QuorumError: a split has no text left.
    """
    kept: set[str] = set()
    for split in SPLITS:
        take: Take | None = getattr(takes, split)
        if take is None:
            continue
        own = {identity: text for identity, text in texts.items() if text.split == split}
        chosen = _of_split(own, texts, take, f"{seed}/" if split == "train" else "")
        if not chosen:
            remedy = "raise what is taken of it" if own else f"give some texts the split {split}"
            raise QuorumError(f"{split}: no text is left of {len(own)}; {remedy}")
        kept |= chosen
    return {identity: text for identity, text in texts.items() if identity in kept}


def _of_split(own: Mapping[str, Text], texts: Mapping[str, Text], take: Take, salt: str) -> set[str]:
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


def _largest(texts: Mapping[str, Text], count: int) -> list[str]:
    """The owners with the most training texts, of those who have some of each split."""
    held: dict[str, Counter[Split]] = {}
    for text in texts.values():
        held.setdefault(text.owner, Counter())[text.split] += 1
    there = {text.split for text in texts.values()}
    whole = [owner for owner, splits in held.items() if all(splits[split] for split in there)]
    return sorted(whole, key=lambda owner: (-held[owner]["train"], owner))[:count]
