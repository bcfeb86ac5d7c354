"""What a run's models predict on test examples, the loss of the right answers, and the report's lens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from pipeline.corpora.hash_order import hash_order
from pipeline.federated.head import BATCH, BackboneWithHead, Load, per_token
from pipeline.federated.objectives.cross_entropy import cross_entropy, entropy
from pipeline.model.adapter import on_device, read_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.encoder import Encoder
from pipeline.model.entry import Entry
from pipeline.model.tensor_file import digest_of_tensors
from pipeline.plan.learner import Learner
from pipeline.runs.decoding import decode
from pipeline.runs.encoding import Reading
from pipeline.runs.index import Index
from pipeline.runs.jobs import Job, sharing_with, steps_of
from pipeline.runs.learners import reading
from pipeline.tasks.encoded import EncoderWithHead
from pipeline.tasks.task import EncoderTask, Prediction, load_task
from pipeline.workspace import layout
from pipeline.workspace.progress import progress
from pipeline.workspace.record import Json

LENS_EXAMPLES = 2  # references of each client in the report's lens: the first ones of a fixed shuffle
OTHERS = ("last", "local", "server", "best")
"""A client's other models: of the last round, its own before aggregation, the server's, of its best round."""

Losses = dict[str, torch.Tensor]  # example -> the loss of each of its items


def answer_of(made: Prediction | None, losses: torch.Tensor | None) -> Json:
    """An example's prediction, its loss and over how many items."""
    text, ended = (None, None) if made is None else (made.text, made.ended)
    sums = (0.0, 0) if losses is None else (float(losses.double().sum()), len(losses))
    return {"prediction": text, "ended": ended, "loss_sum": sums[0], "items": sums[1]}


@dataclass(frozen=True)
class Predictor:
    """A learner's frozen model, which predicts with the trained tensors of several runs and seeds.

    `examples`: all of the data sets. `known`: a model's digest and the keys of examples -> their losses.
    """

    learner: Learner
    model: Backbone | Encoder
    examples: Json
    known: dict[tuple[str, ...], list[torch.Tensor]] = field(default_factory=dict)

    def texts(self, jobs: Sequence[Job]) -> None:
        """Decode what a run's jobs lack, together with other runs that decode alike."""
        if isinstance(self.model, Encoder) or not steps_of(jobs):
            return
        shared = sharing_with(jobs)
        more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
        with progress(f"predict {shared[0].run_id}{more}", steps_of(shared)) as advance:
            decode(shared, self._reading(jobs[0].index), self.examples, advance)

    def predict(self, job: Job) -> dict[str, Json]:
        """Test example -> what its client's model predicts, and the loss of the right answer if it has one."""
        seen, load = self._seen(job)
        found: dict[str, Json] = {}
        if isinstance(seen, EncoderWithHead):
            # Each model is read when it is needed: those of a fully trained encoder are gigabytes.
            for digest, path in job.models.items():
                ids = [entry.id for client, entry in job.tests if job.digests[client] == digest]
                found |= self._decided(job.index, seen, load, ids, path)
            return found
        made, losses = job.predictions(), Losses()
        for client, path in job.adapters.items():
            losses |= self._losses(seen, load, _of_client(job, client), path)
        return {entry.id: answer_of(made.get(entry.id), losses.get(entry.id)) for _, entry in job.tests}

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
        key = (digest_of_tensors(file), *(entry.key for entry in entries))
        if key not in self.known:
            self.known[key] = per_token(seen, load, entries, read_adapter(file))
        return dict(zip([entry.id for entry in entries], self.known[key], strict=True))

    @torch.no_grad()
    def _decided(
        self, index: Index, seen: EncoderWithHead, load: Load, ids: Sequence[str], file: Path
    ) -> dict[str, Json]:
        """Each example's answer by a model."""
        task: EncoderTask = seen.task
        adapter, read = on_device(read_adapter(file), seen.device), self._reading(index)
        windows = {identity: read.windows(self.examples[identity]) for identity in ids}
        pairs = [pair for i, own in windows.items() for pair in zip(own, index.entries[i], strict=True)]
        pairs.sort(key=lambda pair: len(pair[0].source))  # Windows of similar length share a batch.
        logits, losses = dict[str, torch.Tensor](), Losses()
        for at in range(0, len(pairs), 2 * BATCH):
            chunk = [entry for _, entry in pairs[at : at + 2 * BATCH]]
            prefixes = load([entry.key for entry in chunk])
            outputs = task.outputs(seen.encoder, prefixes, adapter).cpu()
            # A window without the answer has no targets, but logits for both ends, too.
            sizes = [task.items(prefix) for prefix in prefixes]
            for entry, items, prefix in zip(chunk, torch.split(outputs, sizes), prefixes, strict=True):
                logits[entry.id] = items
                if entry.id in windows and entry.tokens:  # an example's first window
                    losses[entry.id] = cross_entropy(items, prefix["targets"].cpu())
        found = {}
        for i, own in windows.items():
            items_of = [logits[entry.id] for entry in index.entries[i]]
            made = Prediction(task.decide(seen.encoder, self.examples[i], own, items_of, index.classes))
            found[i] = answer_of(made, losses.get(i))
        return found


def _of_client(job: Job, client: str) -> list[Entry]:
    """A client's test examples that have a right answer."""
    return [entry for who, entry in job.tests if who == client and entry.tokens]
