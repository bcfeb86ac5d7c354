"""Scores a run's models on its test texts: predictions, their metrics, and the loss of the right answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from pipeline.corpora.example import Example
from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.federated.token_figures import BATCH, BackboneWithHead, Load, token_cross_entropy
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Backbone, Rendered, Row
from pipeline.model.encoder import Encoder
from pipeline.plan.text_orders import TextEvaluateOrder
from pipeline.runs.even_batches import in_batches
from pipeline.runs.prompts import Prompts
from pipeline.runs.text_encoding import Indexed
from pipeline.runs.text_reading import windows_of
from pipeline.tasks.encoded import EncoderWithHead
from pipeline.tasks.task import AnyTask, EncoderTask, Prediction, WriterTask, writes

WRITTEN = 48
"""Titles in a batch of decoding."""

Scores = dict[str, Any]
"""One text's scores: its metrics, `prediction`, `loss_sum` over `items`."""


@dataclass(frozen=True)
class Reading:
    """Reads a run's test texts, in the same way for every model."""

    order: TextEvaluateOrder
    task: AnyTask
    seen: BackboneWithHead
    load: Load
    index: Indexed
    _cut: dict[str, list[Rendered]] = field(default_factory=dict)

    def windows(self, texts: Mapping[str, Any]) -> dict[str, list[Rendered]]:
        """Return each text's windows; a text is tokenized once."""
        model = self.seen.encoder if isinstance(self.seen, EncoderWithHead) else self.seen
        for identity in texts.keys() - self._cut.keys():
            text = texts[identity]
            self._cut[identity] = windows_of(text, self.task, model, self.order.learner.view, self.index.classes)
        return {identity: self._cut[identity] for identity in texts}


def score_texts(
    reading: Reading, texts: Mapping[str, Any], models: Iterable[tuple[Adapter, Sequence[str]]]
) -> list[dict[str, Scores]]:
    """Score each model on its texts: a dict id -> scores for each model.

    Language models decode together, and each text is encoded once for all of them. Encoders are loaded one at a time.
    """
    task = reading.task
    if not writes(task):
        return [_with_losses(*_predicted(reading, task, {i: texts[i] for i in ids}, model)) for model, ids in models]
    writers = [(on_device(model, reading.seen.device), ids) for model, ids in models]
    return [
        _with_losses(_with_scores(task, {i: texts[i] for i in ids}, made), _losses_of_titles(reading, model, ids))
        for (model, ids), made in zip(writers, _written(reading, task, texts, writers), strict=True)
    ]


def _losses_of_titles(reading: Reading, model: Adapter, ids: Sequence[str]) -> dict[str, torch.Tensor]:
    entries = reading.index.learned(ids)
    losses = token_cross_entropy(reading.seen, reading.load, entries, model)
    return dict(zip([entry.id for entry in entries], losses, strict=True))


def _with_losses(made: Mapping[str, Scores], losses: Mapping[str, torch.Tensor]) -> dict[str, Scores]:
    nothing = torch.zeros(0)
    found = {i: losses.get(i, nothing) for i in made}
    return {i: {**row, "loss_sum": float(found[i].double().sum()), "items": len(found[i])} for i, row in made.items()}


@torch.no_grad()
def _predicted(
    reading: Reading, task: EncoderTask, texts: Mapping[str, Example], adapter: Adapter
) -> tuple[dict[str, Scores], dict[str, torch.Tensor]]:
    """Every text's prediction with its scores, and the losses of its items if it has a right answer."""
    seen, index, windows = reading.seen, reading.index, reading.windows(texts)
    assert isinstance(seen, EncoderWithHead)
    encoder: Encoder = seen.encoder
    adapter = on_device(adapter, seen.device)
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
        prefixes = reading.load([entry.key for _, _, entry in chunk])
        found = task.outputs(encoder, prefixes, adapter).cpu()
        # A window without the answer has no targets, but logits for both ends, too.
        sizes = [task.items(prefix) for prefix in prefixes]
        for (_, identity, entry), items, prefix in zip(chunk, torch.split(found, sizes), prefixes, strict=True):
            logits[entry.id] = items
            if entry.id == identity and entry.tokens:
                losses[identity] = cross_entropy(items, prefix["targets"].cpu())
    made: dict[str, Prediction] = {}
    for identity, text in texts.items():
        own = [logits[entry.id] for entry in index.entries[identity]]
        made[identity] = Prediction(task.decide(encoder, text, windows[identity], own, index.classes))
    return _with_scores(task, texts, made), losses


def _written(
    reading: Reading, task: WriterTask, texts: Mapping[str, Any], writers: Sequence[tuple[Adapter, Sequence[str]]]
) -> list[dict[str, Prediction]]:
    """Each model's titles of its texts."""
    rule, seen = reading.order.rule, cast(Backbone, reading.seen)
    assert rule is not None
    writers_of: dict[str, list[int]] = {}
    for number, (_, ids) in enumerate(writers):
        for identity in ids:
            writers_of.setdefault(identity, []).append(number)
    windows = reading.windows({identity: texts[identity] for identity in writers_of})
    made: list[dict[str, Prediction]] = [{} for _ in writers]
    # Texts of similar length share a batch.
    by_length = sorted(writers_of, key=lambda identity: len(windows[identity][0].source))
    rows_of = [len(writers_of[identity]) for identity in by_length]
    prompt = Prompts(seen, reading.load, [own[0] for own in windows.values()])
    for chunk in in_batches(by_length, rows_of, -(-sum(rows_of) // WRITTEN)):
        prefixes = [prompt(reading.index.entries[identity][0].key, windows[identity][0]) for identity in chunk]
        pairs = [(place, number) for place, identity in enumerate(chunk) for number in writers_of[identity]]
        rows = [Row(place, writers[number][0]) for place, number in pairs]
        for (place, number), title in zip(pairs, task.predict(seen, prefixes, rows, rule), strict=True):
            made[number][chunk[place]] = title
    return made


def _with_scores(task: AnyTask, texts: Mapping[str, Any], made: Mapping[str, Prediction]) -> dict[str, Scores]:
    scores = task.score(list(texts.values()), [made[i] for i in texts], use_stemmer=False)
    return {i: {"prediction": made[i].text, **row} for i, row in zip(texts, scores, strict=True)}
