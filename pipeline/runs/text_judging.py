"""A run's models on labelled test texts, an example at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.clients.skews import SERVER
from pipeline.model.adapter import digest, read_adapter
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import TextEvaluateOrder, TextTrainOrder
from pipeline.runs.learning import loader_of, seen_through
from pipeline.runs.text_data import prepared
from pipeline.runs.text_encoding import read_index
from pipeline.runs.text_scoring import Reading, Scores, score_texts
from pipeline.tasks.encoded import load_text_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


class Judge:
    """A run's model, loaded once for all seeds; one model on one client's texts is run once."""

    def __init__(self, name: str, order: TextEvaluateOrder) -> None:
        self._name, self._setting = name, order.setting
        task, index = load_text_task(order.task), read_index(order.dataset, order.view)
        self._texts = prepared(order.dataset, order.task)
        training = read_order(layout.order("train", name), TextTrainOrder).training
        seen, _ = seen_through(training, index)
        self._reading = Reading(order, task, seen, loader_of(order.view, seen.device).training, index)
        self._known: dict[tuple[str, tuple[str, ...]], dict[str, Scores]] = {}

    def at(self, seed: int) -> dict[str, Any]:
        """Each test text's scores under the last round's model, and those of each client's best round beside them."""
        run_id = layout.run_on_texts(self._name, seed)
        federation = read_json(layout.federation(self._setting, seed))
        rows: list[dict[str, Any]] = []
        best: dict[str, list[Scores]] = {}
        for client, own in federation["manifest"].items():
            if not own["test"]:
                continue
            last = next(path for who in (client, SERVER) if (path := layout.adapter(run_id, who)).is_file())
            kept = layout.adapter(run_id, client, "best")
            after_last, after_best = self._scores([last, kept if kept.is_file() else last], own["test"])
            for identity, row in after_last.items():
                about = {"id": identity, "client": client, "group": self._texts[identity].group}
                rows.append(about | {"label": federation["labels"][identity]} | row)
            best[client] = [{k: v for k, v in row.items() if k != "prediction"} for row in after_best.values()]
        return {"examples": rows, "best": best}

    def _scores(self, models: Sequence[Path], ids: Sequence[str]) -> list[dict[str, Scores]]:
        """Each model's, of the same texts."""
        adapters = [read_adapter(model) for model in models]
        keys = [(digest(adapter), tuple(ids)) for adapter in adapters]
        new = {key: adapter for key, adapter in zip(keys, adapters, strict=True) if key not in self._known}
        if new:
            own = {identity: self._texts[identity] for identity in ids}
            self._known |= zip(new, score_texts(self._reading, own, list(new.values())), strict=True)
        return [self._known[key] for key in keys]
