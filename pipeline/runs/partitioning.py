"""Draws a setting at a seed: which examples are used, their clusters or silos, and which client has them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from pipeline.clients import kinds
from pipeline.clients.clusters import Vectors, clusters, silos
from pipeline.clients.kinds import AnySetting, check_rounds
from pipeline.clients.manifest import Manifest, check, leaks
from pipeline.clients.setting import Balanced, Domains, Iid
from pipeline.clients.skews import Given, Natural, Skewed
from pipeline.clients.taking import taken
from pipeline.corpora.example import SPLITS, Split
from pipeline.corpora.labelled import Question, Tagged, Titled
from pipeline.errors import QuorumError
from pipeline.plan.orders import PartitionOrder
from pipeline.workspace import layout
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json

Splits = Sequence[Split]


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
    name: str, order: PartitionOrder, examples: Json, seed: int, sample: Collection[str] = (), needed: Splits = SPLITS
) -> Drawn:
    """Draw one seed's examples, partition them over clients, and check the partition.

    Args:
        sample: the data sets of which only the sample is here; its numbers mean nothing.
        needed: the splits that every client of a domain must have.

    Raises QuorumError if the examples do not fit the setting, a test leaks into training, or a client has too few
    steps.
    """
    setting, fold, is_first = order.setting, order.folds.get(seed, "official"), seed == order.seeds[0]
    where = f"params.yaml: settings.{name}"
    if isinstance(setting, Domains | Iid | Balanced):
        if isinstance(setting, Balanced) and sample:
            setting = setting.fitted(examples)
            if is_first and setting != order.setting:
                say(f"partition {name}: the sample has fewer examples than params.yaml needs: {setting.counts}")
        manifest = kinds.partition(name, setting, examples, seed, fold)
        check(manifest, examples, where, needed)
        if order.batch is not None and not sample:
            for line in check_rounds(name, setting, manifest, examples, seed, fold, order.batch):
                say(f"partition: {line}")
        return Drawn(examples, {}, manifest)
    if isinstance(setting, Given):
        setting = setting.model_copy(update={"file": layout.workspace_file(layout.at_seed(setting.file, seed))})
    if isinstance(setting, Natural) and not any(example.owner for example in examples.values()):
        remedy = "choose kind: skewed, or, in a file of your own, give each row one in a column `owner`"
        raise QuorumError(f"{where}: kind: natural: no example of {order.data[0]} has an owner; {remedy}")
    try:
        used = taken(examples, order.take, seed)
        groups = _groups(setting, used, seed)
    except QuorumError as error:
        raise QuorumError(f"{where}: {error}") from None
    manifest = kinds.partition(name, setting, used, seed, groups=groups)
    # Published splits stay as they are, so that scores compare; a user's file with such groups is refused when read.
    if is_first and (found := len(leaks(manifest, used))):
        say(f"partition {name}: {found} groups of test examples are in training, too, as published")
    return Drawn(used, groups, manifest)


def _groups(setting: AnySetting, texts: Json, seed: int) -> dict[str, str]:
    """Group texts beyond labels, as the setting needs: text -> cluster, or owner -> silo, or empty."""
    by_cluster = isinstance(setting, Skewed) and setting.by == "cluster"
    count = setting.silos or 0 if isinstance(setting, Natural) else 0
    if not by_cluster and not count:
        return {}
    used = [one for one in texts.values() if by_cluster or one.owner]  # a text without an owner is in no silo
    train, others = ([one for one in used if (one.split == "train") is trains] for trains in (True, False))
    mine, theirs = (_vectors(_words(one, answered=by_cluster) for one in part) for part in (train, others))
    if by_cluster:
        return dict(zip([one.id for one in (*train, *others)], chain(*clusters(mine, theirs, seed)), strict=True))
    return silos(mine, [one.owner for one in train], theirs, [one.owner for one in others], seed, count)


def _words(text: Any, *, answered: bool) -> str:
    """Return the words that FedNLP's code clusters: a question, with its answer or without, a title, else the text."""
    if isinstance(text, Question):
        return f"{text.question} {text.answers[0][0]}" if answered else text.question
    if isinstance(text, Titled):
        return text.title
    return " ".join(text.words) if isinstance(text, Tagged) else str(text.text)


def _vectors(texts: Iterable[str]) -> Vectors:
    from pipeline.tasks.similarity import embed  # this import takes seconds, and most federations need none

    texts = list(texts)
    return np.asarray(embed(texts).numpy(), dtype=np.float32) if texts else np.zeros((0, 1), dtype=np.float32)
