"""Analyses beyond scores, of a run's models or of a setting's data: read from disk, computed, returned as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

import torch
from transformers import AutoTokenizer
from transformers import PreTrainedTokenizerBase as Tokenizer

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import Split
from pipeline.evaluation.deciles import deciles
from pipeline.evaluation.divergence import between_clients, topic_counts, word_counts
from pipeline.evaluation.words import Tally, example_tallies, merge, pos_tables, shares_of
from pipeline.federated.head import BackboneWithHead, Load, per_token
from pipeline.federated.history import Round, best_rounds
from pipeline.federated.masks import unpack_masks
from pipeline.federated.objectives.cross_entropy import entropy
from pipeline.federated.objectives.distillation import DISTILLED
from pipeline.model.adapter import Adapter, read_adapter
from pipeline.model.backbone import pieces_of
from pipeline.model.entry import Entry
from pipeline.model.store import PrefixStore
from pipeline.plan.orders import RunRow
from pipeline.runs.index import read_index, read_manifest
from pipeline.runs.learners import model_of, reading
from pipeline.tasks.similarity import embed
from pipeline.workspace import layout
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table


def deciles_of(row: RunRow) -> dict[str, list[dict[str, float]]]:
    """Group each client's validation tokens by the teacher's entropy: client -> its ten groups.

    The teacher is the adapter that the client received in its best round. The student is the client's own adapter at
    the end of the round before.
    """
    found, (seen, load) = {}, _reading(row)
    for client, entries in _entries(row, "val").items():
        student, teacher = (read_adapter(layout.adapter(row.id, client, which)) for which in ("before", "teacher"))
        losses = [torch.cat(per_token(seen, load, entries, a)) for a in (teacher, student)]
        entropies = torch.cat(per_token(seen, load, entries, teacher, entropy))
        found[client] = [asdict(group) for group in deciles(entropies, -losses[0], -losses[1])]
    return found


def crossed_of(row: RunRow) -> dict[str, dict[str, float]]:
    """Test each client's adapter on every client: train client -> test client -> mean loss, nats a token."""
    tests, (seen, load) = _entries(row, "test"), _reading(row)
    adapters = {trained: read_adapter(layout.adapter(row.id, trained)) for trained in tests}

    def loss(entries: list[Entry], adapter: Adapter) -> float:
        return float(torch.cat(per_token(seen, load, entries, adapter)).mean())

    return {a: {b: loss(own, adapter) for b, own in tests.items()} for a, adapter in adapters.items()}


def _reading(row: RunRow) -> tuple[BackboneWithHead, Load]:
    assert row.learner is not None, "a run whose models are analysed has one"
    return reading(row.learner, model_of(row.learner), [])


def _entries(row: RunRow, split: Split) -> dict[str, list[Entry]]:
    """Client -> the entries of its examples of a split that have a target."""
    index = read_index(row.setting, row.name)
    return {client: index.learned(own[split]) for client, own in read_manifest(row.setting, row.seed).items()}


def divergence_of(examples: Mapping[str, Conversation], name: str, topics: int) -> Json:
    """Measure how the training data of a setting's clients diverge, over topics and over words, and by chance."""
    setting, seed = name.split("/")
    manifest = read_manifest(setting, int(seed))
    by_client = {client: [examples[i] for i in splits["train"]] for client, splits in manifest.items()}
    owners = [client for client, own in by_client.items() for _ in own]
    everything = [example for own in by_client.values() for example in own]
    sources = ["\n".join(f"{turn.speaker}: {turn.text}" for turn in one.turns) or one.query for one in everything]
    embeddings = embed(sources).double().cpu().numpy()
    by_topic, topics_by_chance = between_clients(topic_counts(embeddings, topics), owners)
    by_word, words_by_chance = between_clients(word_counts([example.target for example in everything]), owners)
    by_chance = {"topics": topics_by_chance, "words": words_by_chance}
    sizes = {client: len(own) for client, own in by_client.items()}
    return {"topics": by_topic, "words": by_word, "by_chance": by_chance, "examples": sizes}


class WordTables(NamedTuple):
    """Rows of pos_kd.csv and word_shares.csv."""

    parts: list[Json]
    shares: list[Json]


def words_of_run(rows: Sequence[RunRow], examples: Json, samples: int) -> WordTables:
    """Count distilled words over all seeds of a run; empty without a run.

    `examples`: all of its data sets. `samples`: random sign flips of meetings for every interval.
    """
    if not rows or rows[0].learner is None:
        return WordTables([], [])
    run, tokenizer = rows[0].name, AutoTokenizer.from_pretrained(layout.backbone(rows[0].learner.view.backbone))
    by_seed: dict[str, dict[str, list[Tally]]] = {}
    for row in rows:
        for client, meetings in _at_seed(tokenizer, row, examples).items():
            for meeting, own in meetings.items():
                by_seed.setdefault(client, {}).setdefault(meeting, []).append(merge(own))
    tallies = {client: {name: merge(own) for name, own in meetings.items()} for client, meetings in by_seed.items()}
    parts, sensitivities = pos_tables({client: merge(meetings.values()) for client, meetings in tallies.items()})
    shares = [row for client, own in tallies.items() for row in shares_of(run, client, own, samples)]
    more = [(client, *pair) for client, own in sensitivities.items() for pair in own.items()]
    shares += [{"run": run, "client": client, "share": name, "value": round(one, 4)} for client, name, one in more]
    return WordTables(parts, shares)


def _at_seed(tokenizer: Tokenizer, row: RunRow, examples: Json) -> dict[str, dict[str, list[Tally]]]:
    """Client -> meeting -> the words of its training examples, over the rounds up to the client's best one.

    In a round without a mask nothing was distilled.
    """
    assert row.training is not None, "a run that distils is trained"
    history = [Round.of_row(one, row.seed) for one in read_table(layout.history(row.id))]
    masks, store = read_adapter(layout.masks(row.id)), PrefixStore(layout.store())
    found: dict[str, dict[str, list[Tally]]] = {}
    for client, entries in _entries(row, "train").items():
        tokens = [store.training([entry.key])[0]["targets"].tolist() for entry in entries]
        best = best_rounds(history, client)[0]
        rounds = [one.round for one in history if one.client == client and one.round <= best and one.steps]
        count = sum(map(len, tokens))
        distilled = unpack_masks(masks, client, DISTILLED, count)
        nothing = torch.zeros(row.training.local_epochs, count, dtype=torch.bool)
        passes = torch.cat([nothing[:0], *(distilled.get(number, nothing) for number in rounds)])
        by_meeting = found.setdefault(client, {})
        for entry, tally in zip(entries, example_tallies(passes, tokens, partial(pieces_of, tokenizer)), strict=True):
            by_meeting.setdefault(examples[entry.id].group, []).append(tally)
    return found
