"""What is predicted: which of a run's models, and under which name texts are cached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from made_results import LEARNER

from pipeline.errors import QuorumError
from pipeline.model.adapter import write_adapter
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.entry import Entry
from pipeline.plan.orders import PredictOrder
from pipeline.runs.index import Index
from pipeline.runs.jobs import BEST, job_of, model_file
from pipeline.runs.predicting import answer_of
from pipeline.tasks.task import Prediction
from pipeline.workspace import layout

RUN = "fedavg/1"
HOW = {"code": {"a.py": "1"}, "packages": {"torch": "2"}, "task": "pipeline.tasks.summarize"}
WHERE = {"data": ["qmsum"], "setting": "domains", "seeds": [1]}
ORDER = PredictOrder.model_validate(HOW | WHERE | {"learner": LEARNER, "rule": DecodingRule(), "decode": True})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a workspace in which the server has a model, and client A its own."""
    monkeypatch.chdir(tmp_path)
    save("server", 0.0)
    save("A", 1.0)


def save(owner: str, value: float, which: str = "") -> None:
    write_adapter(layout.adapter(RUN, owner, which), {"w": torch.tensor([value])})


def test_a_client_without_a_model_has_the_servers_and_without_a_best_one_the_evaluated() -> None:
    assert [model_file(RUN, client).stem for client in "AB"] == ["A", "server"]
    assert [model_file(RUN, client, BEST).stem for client in "AB"] == ["A", "server"]
    save("B", 2.0, BEST)
    assert model_file(RUN, "B", BEST).stem == "B.best"
    with pytest.raises(QuorumError, match="has no model of A; run `dvc repro train@fedprox`"):
        model_file("fedprox/2", "A")


def name(digest: str = "d", key: str = "k", **changes: Any) -> str:
    """What the file of cached texts is called, of client A's example."""
    index, order = Index(digest, "e", (), {}, {}), ORDER.model_copy(update=changes)
    return job_of(RUN, "", order, index, [("A", Entry("x", key, 3))]).path.name


def test_cached_texts_are_known_by_what_decides_them() -> None:
    """The code, packages, task, rule, backbone, texts and model; not where and of what data they are."""
    before = name()
    changes: list[dict[str, Any]] = [{"code": {"a.py": "2"}}, {"packages": {"torch": "3"}}, {"digest": "other"}]
    changes += [{"task": "pipeline.tasks.title"}, {"rule": DecodingRule(beams=2)}, {"key": "other"}]
    assert len({before, *(name(**change) for change in changes)}) == 7
    assert name(setting="other", seeds=[1, 2], data=["samsum"]) == before
    save("A", 3.0)
    assert name() != before


def test_a_prediction_comes_with_its_loss_and_over_how_many_items() -> None:
    """One example has a right answer of two items, 0.5 and 0.25; the other has none, or no text was decoded."""
    found = {"prediction": "text", "ended": True, "loss_sum": 0.75, "items": 2}
    assert answer_of(Prediction("text", True), torch.tensor([0.5, 0.25])) == found
    assert answer_of(None, None) == {"prediction": None, "ended": None, "loss_sum": 0.0, "items": 0}
