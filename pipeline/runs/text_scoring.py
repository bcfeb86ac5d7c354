"""A run's models on its test texts: what they predict, how that scores, and the loss of what was right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from pipeline.corpora.texts import Text
from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.federated.token_figures import BATCH, Hidden, Load, token_cross_entropy
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Backbone, Rendered, Row
from pipeline.model.encoder import Encoder
from pipeline.plan.text_orders import TextEvaluateOrder
from pipeline.runs.text_encoding import Indexed, windows_of
from pipeline.tasks.encoded import EncoderTask, Under
from pipeline.tasks.task import Prediction
from pipeline.tasks.title import Title

WRITTEN = 48
"""Titles that are decoded together."""

Scores = dict[str, Any]
"""One text's: its metrics, `prediction`, `loss_sum` over `items`."""


@dataclass(frozen=True)
class Reading:
    """What reads a run's test texts, the same under every model."""

    order: TextEvaluateOrder
    task: EncoderTask | Title
    seen: Hidden
    load: Load
    index: Indexed
    _cut: dict[str, list[Rendered]] = field(default_factory=dict)

    def windows(self, texts: Mapping[str, Any]) -> dict[str, list[Rendered]]:
        """Each text's; it is cut into tokens once."""
        model = self.seen.encoder if isinstance(self.seen, Under) else self.seen
        for identity in texts.keys() - self._cut.keys():
            text = texts[identity]
            self._cut[identity] = windows_of(text, self.task, model, self.order.view, self.index.classes)
        return {identity: self._cut[identity] for identity in texts}


def score_texts(reading: Reading, texts: Mapping[str, Any], adapters: Sequence[Adapter]) -> list[dict[str, Scores]]:
    """Every text's scores under each model. Whatever writes reads each text once for all of them."""
    task = reading.task
    if isinstance(task, Title):
        judged = [entry for identity in texts for entry in reading.index.learned([identity])]
        ids = [entry.id for entry in judged]
        losses = [token_cross_entropy(reading.seen, reading.load, judged, adapter) for adapter in adapters]
        found = [dict(zip(ids, own, strict=True)) for own in losses]
        return [_with_losses(*one) for one in zip(_written(reading, task, texts, adapters), found, strict=True)]
    return [_with_losses(*_predicted(reading, task, texts, adapter)) for adapter in adapters]


def _with_losses(made: Mapping[str, Scores], found: Mapping[str, torch.Tensor]) -> dict[str, Scores]:
    sums = {identity: (float(one.double().sum()), len(one)) for identity, one in found.items()}
    return {
        i: {**row, **dict(zip(("loss_sum", "items"), sums.get(i, (0.0, 0)), strict=True))} for i, row in made.items()
    }


@torch.no_grad()
def _predicted(
    reading: Reading, task: EncoderTask, texts: Mapping[str, Text], adapter: Adapter
) -> tuple[dict[str, Scores], dict[str, torch.Tensor]]:
    """Every text's prediction with its scores; and the losses of its items, where it has a right answer."""
    seen, index, windows = reading.seen, reading.index, reading.windows(texts)
    assert isinstance(seen, Under)
    encoder: Encoder = seen.encoder
    adapter = on_device(adapter, seen.device)
    pairs = [
        (window, identity, entry)
        for identity, own in windows.items()
        for window, entry in zip(own, index.entries[identity], strict=True)
    ]
    # Windows of like length share a batch.
    pairs.sort(key=lambda pair: len(pair[0].source))
    logits: dict[str, torch.Tensor] = {}
    losses: dict[str, torch.Tensor] = {}
    for at in range(0, len(pairs), 2 * BATCH):
        chunk = pairs[at : at + 2 * BATCH]
        prefixes = reading.load([entry.key for _, _, entry in chunk])
        found = task.outputs(encoder, prefixes, adapter).cpu()
        # A window that holds no answer has no targets, and is asked for both ends all the same.
        sizes = [task.items(prefix) for prefix in prefixes]
        for (_, identity, entry), items, prefix in zip(chunk, torch.split(found, sizes), prefixes, strict=True):
            logits[entry.id] = items
            if entry.id == identity and entry.tokens:
                losses[identity] = cross_entropy(items, prefix["targets"].cpu())
    rows: dict[str, Scores] = {}
    for identity, text in texts.items():
        own = [logits[entry.id] for entry in index.entries[identity]]
        prediction = task.predict(encoder, text, windows[identity], own, index.classes)
        rows[identity] = {"prediction": prediction, **task.score(text, prediction)}
    return rows, losses


def _written(
    reading: Reading, task: Title, texts: Mapping[str, Any], adapters: Sequence[Adapter]
) -> list[dict[str, Scores]]:
    rule, seen, windows = reading.order.rule, cast(Backbone, reading.seen), reading.windows(texts)
    assert rule is not None
    adapters = [on_device(adapter, seen.device) for adapter in adapters]
    # Texts of like length share a batch.
    ids = sorted(texts, key=lambda identity: len(windows[identity][0].source))
    made: list[dict[str, Prediction]] = [{} for _ in adapters]
    together = max(1, WRITTEN // len(adapters))
    for at in range(0, len(ids), together):
        chunk = ids[at : at + together]
        prefixes = []
        for identity in chunk:
            stored, more = seen.encode(windows[identity][0], for_generation=True)
            prefixes.append(stored | more)
        rows = [Row(place, adapter) for adapter in adapters for place in range(len(chunk))]
        titles = iter(task.predict(seen, prefixes, rows, rule))
        for own in made:
            own.update((identity, next(titles)) for identity in chunk)
    return [_titled(task, texts, own) for own in made]


def _titled(task: Title, texts: Mapping[str, Any], made: Mapping[str, Prediction]) -> dict[str, Scores]:
    scores = task.score_texts(list(texts.values()), [made[identity] for identity in texts])
    return {i: {"prediction": made[i].text, **row} for i, row in zip(texts, scores, strict=True)}
