"""Draws a federation at a seed: which texts are used, their clusters or silos, and which client has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.clients.clusters import Vectors, clusters, silos
from pipeline.clients.manifest import Manifest
from pipeline.clients.skews import Given, Natural, Skewed, partition
from pipeline.clients.taking import Takes, taken
from pipeline.corpora.example import Example
from pipeline.corpora.labelled import Question, Tagged, Titled
from pipeline.plan.federations import Federation
from pipeline.workspace import layout


@dataclass(frozen=True)
class FederationDraw:
    """One seed's texts, their groups beyond labels, and the clients that have them."""

    used: Mapping[str, Any]
    groups: Mapping[str, str]
    manifest: Manifest


def draw_federation(
    skew: Federation, take: Takes, texts: Mapping[str, Example], seed: int, dataset: str
) -> FederationDraw:
    """Draw one seed's texts and partition them over clients.

    Raises:
        QuorumError: the texts do not fit the skew.
    """
    if isinstance(skew, Given):
        skew = skew.model_copy(update={"file": layout.workspace_file(layout.at_seed(skew.file, seed))})
    used = taken(texts, take, seed)
    groups = groups_of(skew, used, seed)
    return FederationDraw(used, groups, partition(skew, used, seed, dataset, groups))


def subject_of(text: Any) -> str:
    """Return the words that FedNLP's code clusters: a question with its answer, a title, else the text."""
    if isinstance(text, Question):
        return f"{text.question} {text.answers[0][0]}"
    if isinstance(text, Titled):
        return text.title
    return " ".join(text.words) if isinstance(text, Tagged) else str(text.text)


def groups_of(skew: Federation, texts: Mapping[str, Example], seed: int) -> dict[str, str]:
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


def label_of(identity: str, text: Example, groups: Mapping[str, str]) -> str:
    """Return the group that weights a text in a client's mean: its cluster, its owner's silo, else its label."""
    return groups.get(identity, groups.get(text.owner, text.label))


def _vectors(texts: list[Example]) -> Vectors:
    return _embedded([subject_of(text) for text in texts])


def _embedded(words: list[str]) -> Vectors:
    from pipeline.tasks.similarity import embed  # this import takes seconds, and most federations need none

    return np.asarray(embed(words).numpy(), dtype=np.float32) if words else np.zeros((0, 1), dtype=np.float32)
