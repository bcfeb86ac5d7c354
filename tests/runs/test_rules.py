"""Rules that choose units or turns without a model, with scores worked by hand."""

import hashlib
from pathlib import Path

import pytest
import torch

from pipeline.corpora.documents import Document
from pipeline.model.entry import Entry
from pipeline.model.store import PrefixStore
from pipeline.runs.index import Index
from pipeline.runs.rules import SCORES, regression
from pipeline.tasks.extract import summary_of
from pipeline.workspace import layout

ONE = Document("d", "test", "", "d", ("the cat sat", "A dog", "the cat, the dog ran"), (0, 1, 0), ("A dog",), 1)


@pytest.mark.parametrize(
    ("rule", "scores"),
    [("lead", [0, -1]), ("longest", [3, 2, 5]), ("frequent", [3, 2, 5]), ("frequent", [2, 1]), ("oracle", [0, 1, 0])],
)
def test_a_rule_scores_the_units_that_are_read(rule: str, scores: list[int]) -> None:
    """Of frequent words cat and dog count 2, sat and ran 1; the and a do not count. Of two units cat counts 1."""
    assert list(SCORES[rule](ONE, len(scores), 1)) == scores
    assert summary_of(ONE, scores) == ONE.units[scores.index(max(scores))]


def test_random_units_are_the_first_by_the_hashes_of_id_place_and_seed() -> None:
    first = min(range(3), key=lambda place: hashlib.sha256(f"d/{place}/7".encode()).digest())
    assert summary_of(ONE, SCORES["random"](ONE, 3, 7)) == ONE.units[first]


def test_a_regression_learns_from_training_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units whose vector is positive are extracted; that of the test's second unit is."""
    monkeypatch.setenv("QUORUM_WORK", str(tmp_path))
    keys = {"t": "a" * 64, "d": "b" * 64}
    vectors = {"t": [[1.0], [-1.0], [2.0], [-2.0]], "d": [[-1.0], [1.0], [-3.0]]}
    for name, key in keys.items():
        hidden = torch.tensor(vectors[name])
        PrefixStore(layout.store()).put(key, {"hidden": hidden, "targets": (hidden[:, 0] > 0).long()})
    entries = {name: [Entry(name, key, len(vectors[name]), 0)] for name, key in keys.items()}
    index = Index("", "", ("out", "in"), entries, {})
    score = regression(index, {"client": {"train": ["t"], "val": [], "test": []}})
    assert summary_of(ONE, score(ONE, 3, 1)) == "A dog"
