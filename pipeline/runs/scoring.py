"""Scores runs: their predicted texts, their adapters' loss on the references, and the report's lens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.prepared import examples_of
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
from pipeline.runs.jobs import ScoringJob, planned_decoding
from pipeline.tasks.task import Prediction, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_jsonl, write_json

LENS_EXAMPLES = 2
"""References of each client in the report's lens: the first ones of a fixed shuffle."""


def score(jobs: Sequence[ScoringJob], advance: Callable[[int], None]) -> None:
    """Score runs that share one order, and cache each run's scores at its job's path; `advance` counts runs.

    Raises:
        QuorumError: the first run cannot be scored. If another run fails, its own stage reports the error.
    """
    order = jobs[0].order
    backbone = planned_backbone(order)
    losses = _Losses(backbone, Loader(layout.store(), backbone.device), order)
    examples = examples_of(planned_decoding(jobs[0].run_id).corpora, load_task(order.task).kind)
    for job in jobs:
        try:
            write_json(job.path, _scored(job.run_id, job.order, losses, examples))
        except QuorumError:
            if job is jobs[0]:
                raise
        advance(1)


@dataclass(frozen=True)
class _Losses:
    """Losses of references by token; an adapter that is repeated on one test set is evaluated once."""

    backbone: Backbone
    loader: Loader
    order: EvaluateOrder
    known: dict[tuple[str, ...], list[torch.Tensor]] = field(default_factory=dict)

    def by_token(self, entries: Sequence[Entry], adapter: Adapter) -> list[torch.Tensor]:
        """Return one tensor of losses (tokens) for each entry."""
        key = (digest(adapter), *(entry.key for entry in entries))
        if key not in self.known:
            seen, load = inputs(self.order, self.backbone, self.loader, entries)
            self.known[key] = token_cross_entropy(seen, load, entries, adapter)
        return self.known[key]


def _scored(run_id: str, order: EvaluateOrder, losses: _Losses, examples: Mapping[str, Any]) -> dict[str, Any]:
    """One run's `scores` of clients and examples, and its `lens`."""
    encoded = read_encoded(run_id)
    rows = _text_scores(run_id, order, examples)
    if {entry.id for splits in encoded.clients.values() for entry in splits["test"]} != set(rows):
        raise QuorumError(f"{layout.predictions(run_id)}: is of other examples than the plan's; run `dvc repro`")
    clients: dict[str, dict[str, Any]] = {}
    lens: list[dict[str, Any]] = []
    for client, splits in () if order.turns else encoded.clients.items():
        adapters = _adapters(run_id, client)
        found = {name: losses.by_token(splits["test"], a) for name, a in adapters.items() if name != "teacher"}
        for entry, tokens in zip(splits["test"], found["best"], strict=True):
            rows[entry.id] |= {"loss_sum": float(tokens.double().sum()), "tokens": entry.tokens}
        found.setdefault("last", found["best"])
        clients[client] = {f"{name}_loss": _mean(tokens) for name, tokens in found.items()}
        if "teacher" in adapters and not order.uncached:
            lens += _lens(losses.backbone, losses.loader, client, splits["test"], adapters["teacher"])
    meetings = {e["id"]: e["meeting"] for splits in encoded.index["clients"].values() for e in splits["test"]}
    scored = [{**row, "id": i, "meeting": meetings[i]} for i, row in rows.items()]
    return {"scores": {"clients": clients, "examples": scored}, "lens": lens}


def _text_scores(run_id: str, order: EvaluateOrder, examples: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Scores of predictions by example; only the examples' clients for a run without predictions."""
    predicted = read_jsonl(layout.predictions(run_id))
    if not predicted or any(row["prediction"] is None for row in predicted):
        return {row["id"]: {"client": row["client"]} for row in predicted}
    predictions = [Prediction(row["prediction"], row["ended"]) for row in predicted]
    scores = load_task(order.task).score(
        [examples[row["id"]] for row in predicted], predictions, use_stemmer=order.use_stemmer
    )
    return {row["id"]: {"client": row["client"], **own} for row, own in zip(predicted, scores, strict=True)}


def _adapters(run_id: str, client: str) -> dict[str, Adapter]:
    """List the adapter that a client's row reports (`best`), and its teacher, last round and other model if they exist.

    The other model is the client's own before aggregation (`local`) if the row reports the server's, else `server`.
    """
    others = {name: layout.adapter(run_id, client, name) for name in ("teacher", "last", "local", "server")}
    found = {"best": layout.adapter(run_id, client)} | {n: path for n, path in others.items() if path.is_file()}
    return {name: read_adapter(path) for name, path in found.items()}


def _mean(tokens: list[torch.Tensor]) -> float:
    return float(torch.cat(tokens).double().mean())


def _lens(
    backbone: Backbone, loader: Loader, client: str, entries: Sequence[Entry], teacher: Adapter
) -> list[dict[str, Any]]:
    """Reference summaries with the teacher's entropy at every token, in nats."""
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
