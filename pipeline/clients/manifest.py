"""A manifest: who holds which examples. JSON with ids only: {client: {train, val, test: [id, ...]}}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.clients.setting import Share
from pipeline.corpora.example import SPLITS, Example, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.errors import QuorumError

Manifest = dict[str, dict[Split, list[str]]]


RECORDINGS = ("qmsum", "ami", "icsi")
"""Corpora that share meetings: AMI's are QMSum's Product, ICSI's its Academic, under the same names."""


def by_split(examples: Mapping[str, Example], domain: str) -> dict[Split, list[str]]:
    """A domain's examples, in their own order."""
    held: dict[Split, list[str]] = {split: [] for split in SPLITS}
    for identity, example in examples.items():
        if example.domain == domain:
            held[example.split].append(identity)
    return held


def scaled(held: Mapping[Split, Sequence[str]], share: Share, seed: int) -> dict[Split, list[str]]:
    """What is taken of a client's splits, drawn anew for each seed."""
    salt = f"{seed}/"
    return {
        "train": take_fraction(held["train"], share.train_fraction or 1.0, salt),
        "val": take_at_most(held["val"], share.validation_examples, salt),
        "test": take_at_most(held["test"], share.test_examples, salt),
    }


def take_fraction(ids: Sequence[str], fraction: float, salt: str = "") -> list[str]:
    """The nearest whole number to `fraction` of the ids, at least one of a non-empty list, in their own order."""
    if not ids:
        return []
    return take_at_most(ids, max(1, round(fraction * len(ids))), salt)


def take_at_most(ids: Sequence[str], count: int | None, salt: str = "") -> list[str]:
    """`count` ids, or all, in their own order."""
    chosen = set(hash_order(ids, salt)[:count])
    return [identity for identity in ids if identity in chosen]


def check(manifest: Manifest, examples: Mapping[str, Example], where: str) -> None:
    """Fail on a client that lacks a split's examples, and on any leak between training and test.

    No example, and no meeting, may be in the training of one client and the test of any.

    Raises:
        QuorumError: names the client, or the meeting that leaks.
    """
    for client, splits in manifest.items():
        for split in SPLITS:
            if not splits[split]:
                raise QuorumError(f"{where}: client {client} has no {split} examples; add meetings or drop it")
    trained = {_meeting(examples[i]): client for client, splits in manifest.items() for i in splits["train"]}
    for client, splits in manifest.items():
        for identity in splits["test"]:
            meeting = _meeting(examples[identity])
            if meeting in trained:
                raise QuorumError(
                    f"{where}: meeting {meeting[1]} is in the test of {client} and in the training of "
                    f"{trained[meeting]}; remove it from one of them"
                )


def _meeting(example: Example) -> tuple[str, str]:
    return "recordings" if example.corpus in RECORDINGS else example.corpus, example.meeting
