"""What a run's models predict on test examples, the loss of the right answers, and the report's lens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pipeline.corpora.hash_order import hash_order
from pipeline.federated.head import entropies_through_head
from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.federated.token_figures import BATCH, BackboneWithHead, Load, token_cross_entropy
from pipeline.model.adapter import Adapter, digest, on_device, read_adapter
from pipeline.model.backbone import Backbone, targets_of
from pipeline.model.encoder import Encoder
from pipeline.model.entry import Entry
from pipeline.plan.learner import Learner
from pipeline.runs.decoding import decode, steps_of
from pipeline.runs.encoding import Reading
from pipeline.runs.index import Index
from pipeline.runs.jobs import Job, label, sharing_with
from pipeline.runs.learners import model_of, reading
from pipeline.tasks.encoded import EncoderWithHead
from pipeline.tasks.task import EncoderTask, Prediction, load_task
from pipeline.workspace import layout
from pipeline.workspace.progress import progress
from pipeline.workspace.record import Json

LENS_EXAMPLES = 2
"""References of each client in the report's lens: the first ones of a fixed shuffle."""
OTHERS = ("last", "local", "server", "best")
"""A client's other models: of the last round, its own before aggregation, the server's, of its best round."""

Losses = Mapping[str, torch.Tensor]
"""Example -> the loss of each of its items."""


@dataclass(frozen=True)
class Predicted:
    """One model's answers, by example.

    `losses`: of the examples with a right answer.
    """

    predictions: Mapping[str, Prediction]
    losses: Losses

    def of(self, identity: str) -> Json:
        """An example's prediction, its loss and over how many items."""
        made, losses = self.predictions.get(identity), self.losses.get(identity, torch.zeros(0))
        found = {"loss_sum": float(losses.double().sum()), "items": len(losses)}
        return {"prediction": made and made.text, "ended": made and made.ended} | found


@dataclass(frozen=True)
class Predictor:
    """A learner's frozen model, which predicts with the trained tensors of several runs and seeds.

    Attributes:
        examples: all examples of the data sets.
    """

    learner: Learner
    model: Backbone | Encoder
    examples: Json
    known: dict[tuple[str, ...], list[torch.Tensor]] = field(default_factory=dict)

    @classmethod
    def of(cls, learner: Learner, examples: Json) -> Predictor:
        """Load a learner's model."""
        return cls(learner, model_of(learner), examples)

    def texts(self, jobs: Sequence[Job]) -> None:
        """Decode what a run's jobs lack, together with other runs that decode alike."""
        if isinstance(self.model, Encoder) or not any(job.has_work() for job in jobs):
            return
        shared = sharing_with(jobs)
        with progress(label("predict", shared), steps_of(shared)) as advance:
            decode(shared, self._reading(jobs[0].index), self.examples, advance)

    def predict(self, job: Job) -> Predicted:
        """A job's predictions and the losses of its test examples, by each client's model."""
        seen, load = reading(self.learner, self.model, [entry for _, entry in job.tests])
        if isinstance(seen, EncoderWithHead):
            return self._classified(job, seen, load)
        losses: dict[str, torch.Tensor] = {}
        for client, path in job.adapters.items():
            losses |= self._losses(seen, load, [e for who, e in job.tests if who == client], read_adapter(path))
        return Predicted(job.predictions(), losses)

    def other_losses(self, job: Job) -> dict[str, dict[str, float]]:
        """Client -> the mean loss an item of its evaluated model and of its others, for models that write."""
        if isinstance(self.model, Encoder):
            return {}
        seen, load = reading(self.learner, self.model, [entry for _, entry in job.tests])
        found: dict[str, dict[str, float]] = {}
        for client, path in job.adapters.items():
            files = {name: layout.adapter(job.run_id, client, name) for name in OTHERS}
            there = {"evaluated": path} | {name: file for name, file in files.items() if file.is_file()}
            entries = [entry for who, entry in job.tests if who == client and entry.tokens]
            means = {
                name: _mean(self._losses(seen, load, entries, read_adapter(file)).values())
                for name, file in there.items()
            }
            means.setdefault("last", means["evaluated"])
            found[client] = {f"{name}_loss": loss for name, loss in means.items()}
        return found

    def lens(self, job: Job) -> list[Json]:
        """References with the teacher's entropy at every token, in nats, for models that write."""
        if isinstance(self.model, Encoder) or self.learner.uncached:
            return []
        _, load = reading(self.learner, self.model, [])
        rows = []
        for client in job.adapters:
            path = layout.adapter(job.run_id, client, "teacher")
            if path.is_file():
                entries = [entry for who, entry in job.tests if who == client]
                rows += _lens(self.model, load, client, entries, read_adapter(path))
        return rows

    def _reading(self, index: Index) -> Reading:
        task, view = load_task(self.learner.task), self.learner.view
        return Reading(self.model, task, view, index.classes, index.digest, index.encoding)

    def _losses(
        self, seen: BackboneWithHead, load: Load, entries: Sequence[Entry], model: Adapter
    ) -> dict[str, torch.Tensor]:
        """Losses by example; a model that is repeated on one test set is evaluated once."""
        entries = [entry for entry in entries if entry.tokens]
        key = (digest(model), *(entry.key for entry in entries))
        if key not in self.known:
            self.known[key] = token_cross_entropy(seen, load, entries, model)
        return dict(zip([entry.id for entry in entries], self.known[key], strict=True))

    def _classified(self, job: Job, seen: EncoderWithHead, load: Load) -> Predicted:
        """Decide by each model for its clients' examples."""
        ids_of: dict[str, list[str]] = {}
        for client, entry in job.tests:
            ids_of.setdefault(job.digests[client], []).append(entry.id)
        file_of = {job.digests[client]: path for client, path in job.adapters.items()}
        predictions: dict[str, Prediction] = {}
        losses: dict[str, torch.Tensor] = {}
        for own, ids in ids_of.items():
            # Each model is read when it is needed: those of a fully trained encoder are gigabytes.
            made, found = _decided(self._reading(job.index), seen, load, job.index, self.examples, ids, file_of[own])
            predictions |= made
            losses |= found
        return Predicted(predictions, losses)


@torch.no_grad()
def _decided(
    read: Reading,
    seen: EncoderWithHead,
    load: Load,
    index: Index,
    examples: Json,
    ids: Sequence[str],
    file: Any,
) -> tuple[dict[str, Prediction], dict[str, torch.Tensor]]:
    """Each example's prediction, and the losses of its items if it has a right answer."""
    task: EncoderTask = seen.task
    adapter = on_device(read_adapter(file), seen.device)
    windows = {identity: read.windows(examples[identity]) for identity in ids}
    pairs = [
        (window, identity, entry)
        for identity, own in windows.items()
        for window, entry in zip(own, index.entries[identity], strict=True)
    ]
    # Windows of similar length share a batch.
    pairs.sort(key=lambda pair: len(pair[0].source))
    logits: dict[str, torch.Tensor] = {}
    losses: dict[str, torch.Tensor] = {}
    for at in range(0, len(pairs), 2 * BATCH):
        chunk = pairs[at : at + 2 * BATCH]
        prefixes = load([entry.key for _, _, entry in chunk])
        found = task.outputs(seen.encoder, prefixes, adapter).cpu()
        # A window without the answer has no targets, but logits for both ends, too.
        sizes = [task.items(prefix) for prefix in prefixes]
        for (_, identity, entry), items, prefix in zip(chunk, torch.split(found, sizes), prefixes, strict=True):
            logits[entry.id] = items
            if entry.id == identity and entry.tokens:
                losses[identity] = cross_entropy(items, prefix["targets"].cpu())
    made = {}
    for identity in ids:
        own = [logits[entry.id] for entry in index.entries[identity]]
        made[identity] = Prediction(
            task.decide(seen.encoder, examples[identity], windows[identity], own, index.classes)
        )
    return made, losses


def _mean(losses: Any) -> float:
    return float(torch.cat(list(losses)).double().mean())


def _lens(backbone: Backbone, load: Load, client: str, entries: Sequence[Entry], teacher: Adapter) -> list[Json]:
    chosen = hash_order([entry.id for entry in entries])[:LENS_EXAMPLES]
    rows = []
    for entry in (entry for entry in entries if entry.id in chosen):
        prefixes = load([entry.key])
        with torch.no_grad():
            hidden = backbone.target_hidden(prefixes, on_device(teacher, backbone.device))
        entropy = entropies_through_head(backbone.head, hidden, targets_of(prefixes))
        tokens = prefixes[0]["targets"].tolist()
        rows.append({"client": client, "id": entry.id, "pieces": backbone.pieces(tokens), "entropy": entropy.tolist()})
    return rows
