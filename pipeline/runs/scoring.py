"""The scores of runs: of their predictions' text, and of their adapters' loss on the references; and the lens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pipeline.corpora.hash_order import hash_order
from pipeline.errors import QuorumError
from pipeline.federated.head import entropies_through_head
from pipeline.federated.inputs import inputs
from pipeline.federated.token_figures import token_cross_entropy
from pipeline.model.adapter import Adapter, digest, on_device, read_adapter
from pipeline.model.backbone import Backbone, targets_of
from pipeline.model.entry import Entry
from pipeline.model.loader import Loader
from pipeline.model.loading import planned_backbone
from pipeline.plan.orders import EvaluateOrder
from pipeline.runs.index import read_encoded
from pipeline.runs.jobs import ScoringJob
from pipeline.tasks.task import Prediction, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_jsonl, write_json

LENS_EXAMPLES = 2
"""References a client that the report's lens shows: the first in a fixed shuffle, not picked by hand."""


def score(jobs: Sequence[ScoringJob], advance: Callable[[int], None]) -> None:
    """Score runs that share one order, and keep each one's scores where its job says; `advance` a run.

    Raises:
        QuorumError: the first run cannot be scored. Another that cannot is left to its own stage, which will say so.
    """
    order = jobs[0].order
    backbone = planned_backbone(order)
    losses = _Losses(backbone, Loader(layout.store(), backbone.device), order)
    for job in jobs:
        try:
            write_json(job.path, _scored(job.run_id, job.order, losses))
        except QuorumError:
            if job is jobs[0]:
                raise
        advance(1)


@dataclass(frozen=True)
class _Losses:
    """Losses of references, token by token; an adapter that comes twice on one test set is run once."""

    backbone: Backbone
    loader: Loader
    order: EvaluateOrder
    known: dict[tuple[str, ...], list[torch.Tensor]] = field(default_factory=dict)

    def of(self, entries: Sequence[Entry], adapter: Adapter) -> list[torch.Tensor]:
        key = (digest(adapter), *(entry.key for entry in entries))
        if key not in self.known:
            seen, load = inputs(self.order, load_task(self.order.task), self.backbone, self.loader, entries)
            self.known[key] = token_cross_entropy(seen, load, entries, adapter)
        return self.known[key]


def _scored(run_id: str, order: EvaluateOrder, losses: _Losses) -> dict[str, Any]:
    """One run: the `scores` of its clients and examples, and its `lens`."""
    encoded = read_encoded(run_id)
    rows = _text_scores(run_id, order)
    if {entry.id for splits in encoded.clients.values() for entry in splits["test"]} != set(rows):
        raise QuorumError(f"{layout.predictions(run_id)}: is of other examples than the plan's; run `dvc repro`")
    clients: dict[str, dict[str, Any]] = {}
    lens: list[dict[str, Any]] = []
    for client, splits in () if order.turns else encoded.clients.items():
        adapters = _adapters(run_id, client)
        found = {name: losses.of(splits["test"], a) for name, a in adapters.items() if name != "teacher"}
        for entry, tokens in zip(splits["test"], found["best"], strict=True):
            rows[entry.id] |= {"loss_sum": float(tokens.double().sum()), "tokens": entry.tokens}
        found.setdefault("last", found["best"])
        clients[client] = {f"{name}_loss": _mean(tokens) for name, tokens in found.items()}
        if "teacher" in adapters and not order.uncached:
            lens += _lens(losses.backbone, losses.loader, client, splits["test"], adapters["teacher"])
    meetings = {e["id"]: e["meeting"] for splits in encoded.index["clients"].values() for e in splits["test"]}
    examples = [{**row, "id": i, "meeting": meetings[i]} for i, row in rows.items()]
    return {"scores": {"clients": clients, "examples": examples}, "lens": lens}


def _text_scores(run_id: str, order: EvaluateOrder) -> dict[str, dict[str, Any]]:
    """Scores of predictions, by example; of a run that made none, only whose the examples are (none: left out)."""
    predicted = read_jsonl(layout.predictions(run_id))
    if not predicted or any(row["prediction"] is None for row in predicted):
        return {row["id"]: {"client": row["client"]} for row in predicted}
    references = [row["reference"] for row in predicted]
    made = [Prediction(row["prediction"], row["ended"]) for row in predicted]
    scores = load_task(order.task).score(references, made, use_stemmer=order.use_stemmer)
    return {row["id"]: {"client": row["client"], **own} for row, own in zip(predicted, scores, strict=True)}


def _adapters(run_id: str, client: str) -> dict[str, Adapter]:
    """What a client's row is about (`best`), and what exists besides: its teacher, its last round, its other model.

    Where a row is about the server's model, the other is the client's own before aggregation (`local`), else `server`.
    """
    others = {name: layout.adapter(run_id, client, name) for name in ("teacher", "last", "local", "server")}
    found = {"best": layout.adapter(run_id, client)} | {n: path for n, path in others.items() if path.is_file()}
    return {name: read_adapter(path) for name, path in found.items()}


def _mean(tokens: list[torch.Tensor]) -> float:
    return float(torch.cat(tokens).double().mean())


def _lens(
    backbone: Backbone, loader: Loader, client: str, entries: Sequence[Entry], teacher: Adapter
) -> list[dict[str, Any]]:
    """Reference summaries with the teacher's entropy at every token."""
    chosen = hash_order([entry.id for entry in entries])[:LENS_EXAMPLES]
    rows = []
    for entry in (entry for entry in entries if entry.id in chosen):
        prefixes = loader.training([entry.key])
        with torch.no_grad():
            hidden = backbone.target_hidden(prefixes, on_device(teacher, backbone.device))
        entropy = entropies_through_head(backbone.head, hidden, targets_of(prefixes))
        tokens = prefixes[0]["targets"].tolist()
        rows.append({"client": client, "id": entry.id, "pieces": backbone.pieces(tokens), "entropy": entropy.tolist()})
    return rows
