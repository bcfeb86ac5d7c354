"""What a run's models predict on test examples, the loss of the right answers, and the report's lens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from pipeline.corpora.hash_order import hash_order
from pipeline.federated.head import BATCH, BackboneWithHead, Load, per_token
from pipeline.federated.objectives.cross_entropy import cross_entropy, entropy
from pipeline.model.adapter import digest, on_device, read_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.encoder import Encoder
from pipeline.model.entry import Entry
from pipeline.plan.learner import Learner
from pipeline.runs.decoding import decode, steps_of
from pipeline.runs.encoding import Reading
from pipeline.runs.index import Index
from pipeline.runs.jobs import Job, sharing_with
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

Predictions = dict[str, Prediction]
Losses = dict[str, torch.Tensor]
"""Example -> the loss of each of its items."""


@dataclass(frozen=True)
class Predicted:
    """One model's answers, by example.

    `losses`: of the examples with a right answer.
    """

    predictions: Mapping[str, Prediction]
    losses: Mapping[str, torch.Tensor]

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
        known: a model's digest and the keys of examples -> their losses.
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
        more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
        with progress(f"predict {shared[0].run_id}{more}", steps_of(shared)) as advance:
            decode(shared, self._reading(jobs[0].index), self.examples, advance)

    def predict(self, job: Job) -> Predicted:
        """A job's predictions and the losses of its test examples, by each client's model."""
        seen, load = self._seen(job)
        if isinstance(seen, EncoderWithHead):
            return self._classified(job, seen, load)
        losses: Losses = {}
        for client, path in job.adapters.items():
            losses |= self._losses(seen, load, _of_client(job, client), path)
        return Predicted(job.predictions(), losses)

    def other_losses(self, job: Job) -> dict[str, dict[str, float]]:
        """Client -> the mean loss an item of its evaluated model and of its others, for models that write."""
        if isinstance(self.model, Encoder):
            return {}
        seen, load = self._seen(job)
        found: dict[str, dict[str, float]] = {}
        for client, evaluated in job.adapters.items():
            files = {name: layout.adapter(job.run_id, client, name) for name in OTHERS}
            means: dict[str, float] = {}
            for name, path in ({"evaluated": evaluated} | files).items():
                if path.is_file():
                    losses = self._losses(seen, load, _of_client(job, client), path).values()
                    means[f"{name}_loss"] = float(torch.cat(list(losses)).double().mean())
            means.setdefault("last_loss", means["evaluated_loss"])
            found[client] = means
        return found

    def lens(self, job: Job) -> list[Json]:
        """References with the teacher's entropy at every token, in nats, for models that write."""
        if isinstance(self.model, Encoder) or self.learner.uncached:
            return []
        _, load = self._seen(job)
        rows = []
        for client in job.adapters:
            path = layout.adapter(job.run_id, client, "teacher")
            if not path.is_file():
                continue
            teacher, entries = read_adapter(path), [entry for who, entry in job.tests if who == client]
            chosen = hash_order([entry.id for entry in entries])[:LENS_EXAMPLES]
            for entry in (entry for entry in entries if entry.id in chosen):
                (entropies,) = per_token(self.model, load, [entry], teacher, entropy)
                pieces = self.model.pieces(load([entry.key])[0]["targets"].tolist())
                rows.append({"client": client, "id": entry.id, "pieces": pieces, "entropy": entropies.tolist()})
        return rows

    def _seen(self, job: Job) -> tuple[BackboneWithHead, Load]:
        return reading(self.learner, self.model, [entry for _, entry in job.tests])

    def _reading(self, index: Index) -> Reading:
        task, view = load_task(self.learner.task), self.learner.view
        return Reading(self.model, task, view, index.classes, index.digest, index.encoding)

    def _losses(self, seen: BackboneWithHead, load: Load, entries: Sequence[Entry], file: Path) -> Losses:
        """Losses by example; a model that is repeated on one test set is evaluated once."""
        model = read_adapter(file)
        key = (digest(model), *(entry.key for entry in entries))
        if key not in self.known:
            self.known[key] = per_token(seen, load, entries, model)
        return dict(zip([entry.id for entry in entries], self.known[key], strict=True))

    def _classified(self, job: Job, seen: EncoderWithHead, load: Load) -> Predicted:
        """Decide by each model for its clients' examples."""
        ids_of: dict[str, list[str]] = {}
        for client, entry in job.tests:
            ids_of.setdefault(job.digests[client], []).append(entry.id)
        file_of = {job.digests[client]: path for client, path in job.adapters.items()}
        predictions: Predictions = {}
        losses: Losses = {}
        for own, ids in ids_of.items():
            # Each model is read when it is needed: those of a fully trained encoder are gigabytes.
            made, found = self._decided(job.index, seen, load, ids, file_of[own])
            predictions |= made
            losses |= found
        return Predicted(predictions, losses)

    @torch.no_grad()
    def _decided(
        self, index: Index, seen: EncoderWithHead, load: Load, ids: Sequence[str], file: Path
    ) -> tuple[Predictions, Losses]:
        """Each example's prediction, and the losses of its items if it has a right answer."""
        task: EncoderTask = seen.task
        adapter, read = on_device(read_adapter(file), seen.device), self._reading(index)
        windows = {identity: read.windows(self.examples[identity]) for identity in ids}
        pairs = [pair for i, own in windows.items() for pair in zip(own, index.entries[i], strict=True)]
        # Windows of similar length share a batch.
        pairs.sort(key=lambda pair: len(pair[0].source))
        logits: dict[str, torch.Tensor] = {}
        losses: Losses = {}
        for at in range(0, len(pairs), 2 * BATCH):
            chunk = [entry for _, entry in pairs[at : at + 2 * BATCH]]
            prefixes = load([entry.key for entry in chunk])
            found = task.outputs(seen.encoder, prefixes, adapter).cpu()
            # A window without the answer has no targets, but logits for both ends, too.
            sizes = [task.items(prefix) for prefix in prefixes]
            for entry, items, prefix in zip(chunk, torch.split(found, sizes), prefixes, strict=True):
                logits[entry.id] = items
                if entry.id in windows and entry.tokens:  # an example's first window
                    losses[entry.id] = cross_entropy(items, prefix["targets"].cpu())
        made = {}
        for i, own in windows.items():
            items_of = [logits[entry.id] for entry in index.entries[i]]
            made[i] = Prediction(task.decide(seen.encoder, self.examples[i], own, items_of, index.classes))
        return made, losses


def _of_client(job: Job, client: str) -> list[Entry]:
    """A client's test examples that have a right answer."""
    return [entry for who, entry in job.tests if who == client and entry.tokens]
