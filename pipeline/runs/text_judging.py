"""A run's models on labelled test texts, an example at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.clients.skews import SERVER
from pipeline.model.adapter import digest, read_adapter
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import TextEvaluateOrder, TextTrainOrder
from pipeline.runs.learning import loader_of, seen_through
from pipeline.runs.text_data import prepared
from pipeline.runs.text_encoding import read_index
from pipeline.runs.text_scoring import Scores, score_texts
from pipeline.tasks.encoded import load_text_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


class Judge:
    """A run's model, loaded once for all seeds; one model on one client's texts is run once."""

    def __init__(self, name: str, order: TextEvaluateOrder) -> None:
        self._name, self._order, self._task = name, order, load_text_task(order.task)
        self._texts, self._index = prepared(order.dataset, order.task), read_index(order.dataset, order.view)
        training = read_order(layout.order("train", name), TextTrainOrder).training
        self._seen, _ = seen_through(training, self._index)
        self._load = loader_of(order.view, self._seen.device).training
        self._known: dict[tuple[str, tuple[str, ...]], dict[str, Scores]] = {}

    def at(self, seed: int) -> dict[str, Any]:
        """Each test text's scores under the last round's model, and those of each client's best round beside them."""
        run_id = layout.run_on_texts(self._name, seed)
        federation = read_json(layout.federation(self._order.setting, seed))
        rows: list[dict[str, Any]] = []
        best: dict[str, list[Scores]] = {}
        for client, own in federation["manifest"].items():
            if not own["test"]:
                continue
            last = next(path for who in (client, SERVER) if (path := layout.adapter(run_id, who)).is_file())
            for identity, row in self._scores(last, own["test"]).items():
                about = {"id": identity, "client": client, "group": self._texts[identity].group}
                rows.append(about | {"label": federation["labels"][identity]} | row)
            kept = layout.adapter(run_id, client, "best")
            found = self._scores(kept if kept.is_file() else last, own["test"]).values()
            best[client] = [{k: v for k, v in row.items() if k != "prediction"} for row in found]
        return {"examples": rows, "best": best}

    def _scores(self, model: Any, ids: Sequence[str]) -> dict[str, Scores]:
        adapter = read_adapter(model)
        key = digest(adapter), tuple(ids)
        if key not in self._known:
            own = {identity: self._texts[identity] for identity in ids}
            self._known[key] = score_texts(self._order, self._task, self._seen, self._load, self._index, own, adapter)
        return self._known[key]
