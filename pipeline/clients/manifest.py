"""A manifest lists each client's examples, as JSON with ids only: {client: {train, val, test: [id, ...]}}."""

from collections.abc import Iterable, Mapping, Sequence

from pipeline.corpora.example import SPLITS, Example, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.errors import QuorumError

Manifest = dict[str, dict[Split, list[str]]]
RECORDINGS = ("qmsum", "ami", "icsi")
"""Corpora that share meetings: AMI's are QMSum's Product, ICSI's its Academic, under the same names."""


def by_split(examples: Iterable[Example]) -> dict[Split, list[str]]:
    """Split -> ids of examples, in their order."""
    splits: dict[Split, list[str]] = {split: [] for split in SPLITS}
    for example in examples:
        splits[example.split].append(example.id)
    return splits


def take_fraction(ids: Sequence[str], fraction: float, salt: str = "") -> list[str]:
    """A random `fraction` of the ids, rounded and at least one of a non-empty list, in the order of `ids`."""
    return take_at_most(ids, max(1, round(fraction * len(ids))), salt)


def take_at_most(ids: Sequence[str], count: int | None, salt: str = "") -> list[str]:
    """`count` random ids, or all, in the order of `ids`. A larger sample contains every smaller one."""
    chosen = set(hash_order(ids, salt)[:count])
    return [identity for identity in ids if identity in chosen]


def check(manifest: Manifest, examples: Mapping[str, Example], where: str, needed: Sequence[Split] = SPLITS) -> None:
    """Check that every client has examples of each needed split, and that no meeting is in training and in a test.

    Raises QuorumError if a client has no examples of a split, or a meeting of any client's test trains a client.
    """
    for client, splits in manifest.items():
        for split in needed:
            if not splits[split]:
                raise QuorumError(f"{where}: client {client} has no {split} examples; add meetings or drop it")
    for meeting, (tested, trained) in leaks(manifest, examples).items():
        place = f"in the test of {tested} and in the training of {trained}"
        raise QuorumError(f"{where}: meeting {meeting} is {place}; remove it from one of them")


def leaks(manifest: Manifest, examples: Mapping[str, Example]) -> dict[str, tuple[str, str]]:
    """Find the groups that are in a test and in training: group -> (a client that tests it, one that trains on it)."""

    def of(split: Split) -> dict[tuple[str, str], str]:
        return {_group(examples[i]): client for client, splits in manifest.items() for i in splits[split]}

    trained = of("train")
    return {group[1]: (client, trained[group]) for group, client in of("test").items() if group in trained}


def seen_in_training(manifest: Manifest, texts: Mapping[str, str]) -> list[str]:
    """The test examples whose text is also a training text, of any client; `texts`: by id, as `normal` returns them."""
    trained = {texts[i] for own in manifest.values() for i in own["train"]} - {""}
    return [i for own in manifest.values() for i in own["test"] if texts[i] in trained]


def _group(example: Example) -> tuple[str, str]:
    corpus = getattr(example, "corpus", "")
    return "recordings" if corpus in RECORDINGS else corpus, example.group
