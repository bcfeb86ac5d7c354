"""Which of a data set's texts are used: all, a number, or a number of each label or owner.

Training texts are drawn for each seed. Development and test texts are the same for all seeds, so that a text's scores
at several seeds can be averaged.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from pipeline.clients.setting import Count
from pipeline.corpora.example import SPLITS, Example, Kind
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


def taken(texts: Mapping[str, Kind], takes: Takes, seed: int) -> dict[str, Kind]:
    """The texts that a seed uses, by id, in the order of `texts`. Raises QuorumError if a split has no text left."""
    used: set[str] = set()
    for split in SPLITS:
        take: Take | None = getattr(takes, split)
        if take is None:
            continue
        own = [text for text in texts.values() if text.split == split]
        chosen = _of_split(own, texts, take, f"{seed}/" if split == "train" else "")
        if not chosen:
            remedy = "raise what is taken of it" if own else f"give some texts the split {split}"
            raise QuorumError(f"{split}: no text is left of {len(own)}; {remedy}")
        used.update(chosen)
    return {identity: text for identity, text in texts.items() if identity in used}


def _of_split(own: Sequence[Example], texts: Mapping[str, Example], take: Take, salt: str) -> list[str]:
    """The first texts in hash order, and of each label or owner the first."""
    if take.largest is not None:
        owner_of = {identity: text.owner for identity, text in texts.items()}
        owners = largest_owners(texts, owner_of, 1, in_each_split=True)[: take.largest]
        own = [text for text in own if text.owner in owners]
    group_of = {text.id: getattr(text, take.by) for text in own}
    chosen, counts = [], Counter[str]()
    for identity in hash_order(list(group_of), salt):
        counts[group_of[identity]] += 1
        if take.each is None or counts[group_of[identity]] <= take.each:
            chosen.append(identity)
    return chosen[: take.count]


def largest_owners(
    texts: Mapping[str, Example], owner_of: Mapping[str, str], least: int, *, in_each_split: bool
) -> list[str]:
    """The owners with at least `least` training texts, and, if it must be, some of each split: the largest first."""
    sizes = Counter((owner_of[identity], text.split) for identity, text in texts.items())
    there = {split for _, split in sizes} if in_each_split else ()  # while tuning, no text is tested
    fit = {owner for owner, _ in sizes if owner and all(sizes[owner, split] for split in there)}
    largest = sorted(fit, key=lambda owner: (-sizes[owner, "train"], owner))
    return [owner for owner in largest if sizes[owner, "train"] >= least]
