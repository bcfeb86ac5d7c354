"""A run's models on its test texts: what they predict, how that scores, and the loss of what was right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from pipeline.corpora.texts import Text
from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.federated.token_figures import BATCH, Hidden, Load, token_cross_entropy
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Limits, Row
from pipeline.model.encoder import Encoder
from pipeline.plan.text_orders import TextEvaluateOrder
from pipeline.runs.text_encoding import Indexed
from pipeline.tasks.encoded import EncoderTask, Under
from pipeline.tasks.task import Prediction
from pipeline.tasks.title import Title

WRITTEN = 48
"""Titles that are decoded together."""

Scores = dict[str, Any]
"""One text's: its metrics, `prediction`, `loss_sum` over `items`."""


def score_texts(
    order: TextEvaluateOrder,
    task: EncoderTask | Title,
    seen: Hidden,
    load: Load,
    index: Indexed,
    texts: Mapping[str, Any],
    adapter: Adapter,
) -> dict[str, Scores]:
    """Every text's scores under one model."""
    if isinstance(task, Title):
        made = _written(order, task, seen, texts, adapter)
        judged = [entry for identity in texts for entry in index.learned([identity])]
        losses = token_cross_entropy(seen, load, judged, adapter)
        found = dict(zip((entry.id for entry in judged), losses, strict=True))
    else:
        made, found = _predicted(order, task, seen, load, index, texts, adapter)
    sums = {identity: (float(one.double().sum()), len(one)) for identity, one in found.items()}
    return {
        i: {**row, **dict(zip(("loss_sum", "items"), sums.get(i, (0.0, 0)), strict=True))} for i, row in made.items()
    }


@torch.no_grad()
def _predicted(
    order: TextEvaluateOrder,
    task: EncoderTask,
    seen: Hidden,
    load: Load,
    index: Indexed,
    texts: Mapping[str, Text],
    adapter: Adapter,
) -> tuple[dict[str, Scores], dict[str, torch.Tensor]]:
    """Every text's prediction with its scores; and the losses of its items, where it has a right answer."""
    assert isinstance(seen, Under)
    encoder: Encoder = seen.encoder
    adapter = on_device(adapter, seen.device)
    rendered = {i: task.render(encoder, text, index.classes, order.view.tokens) for i, text in texts.items()}
    windows = [
        (len(read.source), identity, entry)
        for identity, own in rendered.items()
        for read, entry in zip(own, index.entries[identity], strict=True)
    ]
    # Windows of like length share a batch.
    windows.sort(key=lambda window: window[0])
    logits: dict[str, torch.Tensor] = {}
    losses: dict[str, torch.Tensor] = {}
    for at in range(0, len(windows), 2 * BATCH):
        chunk = windows[at : at + 2 * BATCH]
        prefixes = load([entry.key for _, _, entry in chunk])
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
        prediction = task.predict(encoder, text, rendered[identity], own, index.classes)
        rows[identity] = {"prediction": prediction, **task.score(text, prediction)}
    return rows, losses


def _written(
    order: TextEvaluateOrder, task: Title, seen: Any, texts: Mapping[str, Any], adapter: Adapter
) -> dict[str, Scores]:
    assert order.rule is not None
    adapter = on_device(adapter, seen.device)
    limits = Limits(order.view.tokens, order.view.target_tokens or 1)
    # Texts of like length share a batch.
    rendered = {identity: task.render(seen, task.example(text), limits) for identity, text in texts.items()}
    ids = sorted(rendered, key=lambda identity: len(rendered[identity].source))
    made: dict[str, Prediction] = {}
    for at in range(0, len(ids), WRITTEN):
        chunk = ids[at : at + WRITTEN]
        prefixes = []
        for identity in chunk:
            stored, more = seen.encode(rendered[identity], for_generation=True)
            prefixes.append(stored | more)
        rows = [Row(place, adapter) for place in range(len(chunk))]
        made |= dict(zip(chunk, task.predict(seen, prefixes, rows, order.rule), strict=True))
    scores = task.score_texts(list(texts.values()), [made[identity] for identity in texts])
    return {i: {"prediction": made[i].text, **row} for i, row in zip(texts, scores, strict=True)}
