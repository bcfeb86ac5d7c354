"""Baselines without a trained model: three turns of a meeting, or the units of a document that a rule scores best."""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from pipeline.clients.manifest import Manifest
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.documents import Document
from pipeline.plan.orders import PredictOrder
from pipeline.runs.index import Index, read_index
from pipeline.workspace import layout

TURNS = 3  # the number of turns in a summary
Score = Callable[[Document, int, int], Sequence[float]]
"""A document, how many of its units a model reads, and the run's seed -> the scores of these units."""


def writer_of(name: str, order: PredictOrder, seed: int, manifest: Manifest) -> Callable[[Any], str]:
    """An example -> what a run's rule chooses of it."""
    assert order.turns is not None
    if order.learner is None:
        return TURN_WRITERS[order.turns]
    from pipeline.tasks.extract import summary_of

    index = read_index(order.setting, name)
    score = SCORES[order.turns] if order.turns in SCORES else regression(index, manifest)
    return lambda document: summary_of(document, score(document, index.entries[document.id][0].tokens, seed))


def lead_turns(example: Conversation) -> str:
    """Return the first three turns."""
    return " ".join(turn.text for turn in example.turns[:TURNS])


def random_turns(example: Conversation) -> str:
    """Return three random turns in their order, drawn by the example's id."""
    chosen = random.Random(example.id).sample(range(len(example.turns)), min(TURNS, len(example.turns)))
    return " ".join(example.turns[i].text for i in sorted(chosen))


def frequent(document: Document, units: int, _seed: int) -> list[int]:
    """The sum of a unit's words but stop words, each counted as often as it occurs in the units that are read."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    found = (re.findall(r"[a-z0-9]+", unit.lower()) for unit in document.units[:units])
    words = [[word for word in own if word not in ENGLISH_STOP_WORDS] for own in found]
    counts = Counter(chain(*words))
    return [sum(counts[word] for word in own) for own in words]


def at_random(document: Document, units: int, seed: int) -> list[int]:
    """By the hashes of id, place and seed."""
    names = (f"{document.id}/{place}/{seed}" for place in range(units))
    return [-int.from_bytes(hashlib.sha256(name.encode()).digest(), "big") for name in names]


def regression(index: Index, manifest: Manifest) -> Score:
    """Logistic regression of a unit's label on its vector and its place, on all clients' training documents."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from pipeline.model.store import PrefixStore

    store = PrefixStore(layout.store())

    def read(identity: str) -> tuple[Any, Any]:
        """Features (units, n + 2) and labels (units,)."""
        (prefix,) = store.training([index.entries[identity][0].key])
        place = np.arange(len(prefix["hidden"]))
        columns = prefix["hidden"].float().numpy(), place / len(place), 1 / (1 + place)
        return np.column_stack(columns), prefix["targets"].numpy()

    features, labels = zip(*(read(i) for own in manifest.values() for i in own["train"]), strict=True)
    model = LogisticRegression(max_iter=2000).fit(np.concatenate(features), np.concatenate(labels))
    return lambda document, _units, _seed: [float(one) for one in model.decision_function(read(document.id)[0])]


TURN_WRITERS: dict[str, Callable[[Conversation], str]] = {"lead": lead_turns, "random": random_turns}
SCORES: dict[str, Score] = {
    "lead": lambda _document, units, _seed: [-place for place in range(units)],
    "random": at_random,
    "longest": lambda document, units, _seed: [len(unit.split()) for unit in document.units[:units]],
    "frequent": frequent,
    "oracle": lambda document, units, _seed: document.labels_of(units),
}
