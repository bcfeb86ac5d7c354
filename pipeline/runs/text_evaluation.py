"""Evaluates a run's models on labelled test texts, by example."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.clients.skews import SERVER
from pipeline.corpora.prepared import examples_of
from pipeline.model.adapter import digest, read_adapter
from pipeline.plan.text_orders import TextEvaluateOrder
from pipeline.runs.learning import loader_of, seen_through
from pipeline.runs.text_encoding import read_index
from pipeline.runs.text_scoring import Reading, Scores, score_texts
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


class TextEvaluator:
    """Evaluates a run on labelled texts; its backbone is loaded once for all seeds."""

    def __init__(self, name: str, order: TextEvaluateOrder) -> None:
        self._name, self._setting = name, order.setting
        learner = order.learner
        task, index = load_task(learner.task), read_index(order.dataset, learner.view)
        self._texts = examples_of([order.dataset], load_task(learner.task).kind)
        seen, _ = seen_through(learner, index)
        self._reading = Reading(order, task, seen, loader_of(learner.view, seen.device).training, index)

    def scores_at(self, seed: int) -> dict[str, Any]:
        """Score each test text under the last round's model (`examples`) and under its client's best one (`best`)."""
        run_id = layout.run_on_texts(self._name, seed)
        federation = read_json(layout.federation(self._setting, seed))
        tests = {client: own["test"] for client, own in federation["manifest"].items() if own["test"]}
        models = {client: _last_and_best(run_id, client) for client in tests}
        scores = self._scores([(model, tests[client]) for client in tests for model in models[client]])
        rows: list[dict[str, Any]] = []
        best: dict[str, list[Scores]] = {}
        for client, (last, at_best) in models.items():
            for identity in tests[client]:
                about = {"id": identity, "client": client, "group": self._texts[identity].group}
                rows.append(about | {"label": federation["labels"][identity]} | scores[last][identity])
            best[client] = [{k: v for k, v in scores[at_best][i].items() if k != "prediction"} for i in tests[client]]
        return {"examples": rows, "best": best}

    def _scores(self, wanted: Sequence[tuple[Path, Sequence[str]]]) -> dict[Path, dict[str, Scores]]:
        """Each model's scores of its texts; equal models are evaluated once."""
        digests = {path: digest(read_adapter(path)) for path in dict.fromkeys(path for path, _ in wanted)}
        one_of = {own: path for path, own in digests.items()}
        ids_of: dict[str, dict[str, None]] = {}
        for path, ids in wanted:
            ids_of.setdefault(digests[path], {}).update(dict.fromkeys(ids))
        # Each model is read again when needed: all clients' models of a fully trained encoder are gigabytes.
        models = ((read_adapter(one_of[own]), list(ids)) for own, ids in ids_of.items())
        found = dict(zip(ids_of, score_texts(self._reading, self._texts, models), strict=True))
        return {path: found[own] for path, own in digests.items()}


def _last_and_best(run_id: str, client: str) -> tuple[Path, Path]:
    """The models for a client's texts: of the last round, its own or else the server's; and of its best round."""
    last = next(path for who in (client, SERVER) if (path := layout.adapter(run_id, who)).is_file())
    at_best = layout.adapter(run_id, client, "best")
    return last, at_best if at_best.is_file() else last
