"""Draws a setting at a seed: which examples are used, their clusters or silos, and which client has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.clients import kinds
from pipeline.clients.clusters import Vectors, clusters, silos
from pipeline.clients.domains import fitted
from pipeline.clients.kinds import AnySetting, check_rounds
from pipeline.clients.manifest import Manifest, check, leaks
from pipeline.clients.setting import Balanced, Domains, Iid
from pipeline.clients.skews import Given, Natural, Skewed
from pipeline.clients.taking import taken
from pipeline.corpora.example import SPLITS, Example, Split
from pipeline.corpora.labelled import Question, Tagged, Titled
from pipeline.errors import QuorumError
from pipeline.plan.orders import PartitionOrder
from pipeline.workspace import layout
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class Drawn:
    """One seed's examples, their groups beyond labels, and the clients that have them."""

    used: Json
    groups: Mapping[str, str]
    manifest: Manifest

    @property
    def labels(self) -> dict[str, str]:
        """Example -> the group that weights it in a client's mean: its cluster, its owner's silo, else its label."""
        return {i: self.groups.get(i, self.groups.get(e.owner, e.label)) for i, e in self.used.items()}


def draw(
    name: str,
    order: PartitionOrder,
    examples: Json,
    seed: int,
    sample: Collection[str] = (),
    needed: Sequence[Split] = SPLITS,
) -> Drawn:
    """Draw one seed's examples, partition them over clients, and check the partition.

    Args:
        name: the setting's.
        sample: the data sets of which only the sample is here; its numbers mean nothing.
        needed: the splits that every client of a domain must have.

    Raises:
        QuorumError: the examples do not fit the setting, a test leaks into training, or a client has too few steps.
    """
    setting, fold = order.setting, order.folds.get(seed, "official")
    if isinstance(setting, Domains | Iid | Balanced):
        setting = fitted(setting, examples, sample)
        if isinstance(setting, Balanced) and seed == order.seeds[0] and setting != order.setting:
            say(f"partition {name}: the sample has fewer examples than params.yaml needs: {setting.counts}")
        manifest = kinds.partition(name, setting, examples, seed, fold)
        check(manifest, examples, f"params.yaml: settings.{name}", needed)
        if order.batch is not None and not sample:
            for line in check_rounds(name, setting, manifest, examples, seed, fold, order.batch):
                say(f"partition: {line}")
        return Drawn(examples, {}, manifest)
    if isinstance(setting, Given):
        setting = setting.model_copy(update={"file": layout.workspace_file(layout.at_seed(setting.file, seed))})
    if isinstance(setting, Natural) and not any(example.owner for example in examples.values()):
        raise QuorumError(
            f"params.yaml: settings.{name}: kind: natural: no example of {order.data[0]} has an owner; choose kind: "
            "skewed, or, in a file of your own, give each row one in a column `owner`"
        )
    try:
        used = taken(examples, order.take, seed)
        groups = groups_of(setting, used, seed)
    except QuorumError as error:
        raise QuorumError(f"params.yaml: settings.{name}: {error}") from None
    manifest = kinds.partition(name, setting, used, seed, groups=groups)
    # Published splits stay as they are, so that scores compare; a user's file with such groups is refused when read.
    if seed == order.seeds[0] and (found := len(leaks(manifest, used))):
        say(f"partition {name}: {found} groups of test examples are in training, too, as published")
    return Drawn(used, groups, manifest)


def subject_of(text: Any) -> str:
    """Return the words that FedNLP's code clusters: a question with its answer, a title, else the text."""
    if isinstance(text, Question):
        return f"{text.question} {text.answers[0][0]}"
    if isinstance(text, Titled):
        return text.title
    return " ".join(text.words) if isinstance(text, Tagged) else str(text.text)


def groups_of(skew: AnySetting, texts: Mapping[str, Example], seed: int) -> dict[str, str]:
    """Group texts beyond labels, as the skew needs: text -> cluster, or owner -> silo, or empty."""
    if isinstance(skew, Skewed) and skew.by == "cluster":
        train = [i for i, text in texts.items() if text.split == "train"]
        others = [i for i, text in texts.items() if text.split != "train"]
        mine, theirs = clusters(_vectors([texts[i] for i in train]), _vectors([texts[i] for i in others]), seed)
        return dict(zip((*train, *others), (*mine, *theirs), strict=True))
    if isinstance(skew, Natural) and skew.silos:
        owned = [text for text in texts.values() if text.owner]  # a text without an owner is in no silo
        parts = [[t for t in owned if (t.split == "train") is trains] for trains in (True, False)]
        vectors = [
            _embedded([t.question if isinstance(t, Question) else subject_of(t) for t in part]) for part in parts
        ]
        owners = [[text.owner for text in part] for part in parts]
        return silos(vectors[0], owners[0], vectors[1], owners[1], seed, skew.silos)
    return {}


def _vectors(texts: list[Example]) -> Vectors:
    return _embedded([subject_of(text) for text in texts])


def _embedded(words: list[str]) -> Vectors:
    from pipeline.tasks.similarity import embed  # this import takes seconds, and most federations need none

    return np.asarray(embed(words).numpy(), dtype=np.float32) if words else np.zeros((0, 1), dtype=np.float32)
