"""Which words of the training summaries a run distilled: tables from its masks on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from pipeline.evaluation.distilled import example_tallies, merge, pos_tables, shares_of
from pipeline.evaluation.words import Tally
from pipeline.federated.history import best_rounds
from pipeline.federated.masks import unpack_masks
from pipeline.federated.objectives.distillation import DISTILLED
from pipeline.model.adapter import read_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.encoder import Encoder
from pipeline.model.store import PrefixStore
from pipeline.plan.orders import RunRow
from pipeline.runs.index import read_index, read_manifest
from pipeline.runs.learners import model_of
from pipeline.runs.trained import read_history
from pipeline.workspace import layout
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class WordTables:
    """Rows of pos_kd.csv and word_shares.csv."""

    parts: list[Json] = field(default_factory=list)
    shares: list[Json] = field(default_factory=list)


def words_of_run(rows: Sequence[RunRow], examples: Json, samples: int) -> WordTables:
    """Count distilled words over all seeds of a run; empty without a run or for an untrained one.

    Args:
        examples: all examples of its data sets.
        samples: random sign flips of meetings for every interval.
    """
    if not rows or rows[0].training is None:
        return WordTables()
    backbone = model_of(rows[0].training.learner.model_copy(update={"device": "cpu"}))
    assert not isinstance(backbone, Encoder)
    tallies = _over_seeds(backbone, PrefixStore(layout.store(), torch.device("cpu")), rows, examples)
    parts, sensitivities = pos_tables({client: merge(meetings.values()) for client, meetings in tallies.items()})
    shares = [row for client, own in tallies.items() for row in shares_of(rows[0].name, client, own, samples)]
    shares += [
        {"run": rows[0].name, "client": client, "share": share, "value": round(value, 4)}
        for client, own in sensitivities.items()
        for share, value in own.items()
    ]
    return WordTables(parts, shares)


def _over_seeds(
    backbone: Backbone, loader: PrefixStore, rows: Sequence[RunRow], examples: Json
) -> dict[str, dict[str, Tally]]:
    """Client -> meeting -> the words of its training examples."""
    seeds: dict[str, dict[str, list[Tally]]] = {}
    for row in rows:
        for client, meetings in _at_seed(backbone, loader, row, examples).items():
            for meeting, counts in meetings.items():
                seeds.setdefault(client, {}).setdefault(meeting, []).append(counts)
    return {client: {meeting: merge(own) for meeting, own in meetings.items()} for client, meetings in seeds.items()}


def _at_seed(backbone: Backbone, loader: PrefixStore, row: RunRow, examples: Json) -> Mapping[str, Mapping[str, Tally]]:
    """Counts over the rounds up to each client's best one; in a round without a mask nothing was distilled."""
    assert row.training is not None, "a run that distils is trained"
    local_epochs, history = row.training.local_epochs, read_history(row.id, row.seed)
    masks, index = read_adapter(layout.masks(row.id)), read_index(row.setting, row.name)
    found: dict[str, dict[str, Tally]] = {}
    for client, own_splits in read_manifest(row.setting, row.seed).items():
        entries = index.learned(own_splits["train"])
        tokens = [loader.training([entry.key])[0]["targets"].tolist() for entry in entries]
        best = best_rounds(history, client)[0]
        rounds = [one.round for one in history if one.client == client and one.round <= best and one.steps]
        count = sum(map(len, tokens))
        distilled = unpack_masks(masks, client, DISTILLED, count)
        nothing = torch.zeros(local_epochs, count, dtype=torch.bool)
        rows = torch.cat([nothing[:0], *(distilled.get(number, nothing) for number in rounds)])
        by_meeting: dict[str, list[Tally]] = {}
        counted = example_tallies(rows, tokens, backbone.pieces)
        for entry, tally in zip(entries, counted, strict=True):
            by_meeting.setdefault(examples[entry.id].group, []).append(tally)
        found[client] = {meeting: merge(own) for meeting, own in by_meeting.items()}
    return found
