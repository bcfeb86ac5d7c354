"""Analyses beyond scores, of a run's models or of a setting's data: read from disk, computed, returned as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import torch

from pipeline.corpora.conversation import Conversation
from pipeline.evaluation.deciles import deciles
from pipeline.evaluation.divergence import between_clients, topic_counts, word_counts
from pipeline.federated.token_figures import BackboneWithHead, Load, token_cross_entropy, token_entropies
from pipeline.model.adapter import read_adapter
from pipeline.plan.orders import RunRow
from pipeline.runs.index import read_index, read_manifest
from pipeline.runs.learners import model_of, reading
from pipeline.tasks.similarity import embed
from pipeline.workspace import layout
from pipeline.workspace.record import Json


def deciles_of(row: RunRow) -> dict[str, list[dict[str, float]]]:
    """Group each client's validation tokens by the teacher's entropy: client -> its ten groups.

    The teacher is the adapter that the client received in its best round. The student is the client's own adapter at
    the end of the round before.
    """
    found = {}
    index, (seen, load) = read_index(row.setting, row.name), _reading(row)
    for client, own in read_manifest(row.setting, row.seed).items():
        entries = index.learned(own["val"])
        student, teacher = (read_adapter(layout.adapter(row.id, client, which)) for which in ("before", "teacher"))
        losses = [torch.cat(token_cross_entropy(seen, load, entries, a)) for a in (teacher, student)]
        entropy = torch.cat(token_entropies(seen, load, entries, teacher))
        found[client] = [asdict(group) for group in deciles(entropy, -losses[0], -losses[1])]
    return found


def crossed_of(row: RunRow) -> dict[str, dict[str, float]]:
    """Test each client's adapter on every client: train client -> test client -> mean loss, nats a token."""
    index, (seen, load) = read_index(row.setting, row.name), _reading(row)
    tests = {client: index.learned(own["test"]) for client, own in read_manifest(row.setting, row.seed).items()}
    found: dict[str, dict[str, float]] = {}
    for trained in tests:
        adapter = read_adapter(layout.adapter(row.id, trained))
        found[trained] = {
            tested: float(torch.cat(token_cross_entropy(seen, load, entries, adapter)).mean())
            for tested, entries in tests.items()
        }
    return found


def _reading(row: RunRow) -> tuple[BackboneWithHead, Load]:
    assert row.learner is not None, "a run whose models are analysed has one"
    return reading(row.learner, model_of(row.learner), [])


def divergence_of(examples: Mapping[str, Conversation], name: str, topics: int) -> Json:
    """Measure how the training data of a setting's clients diverge, over topics and over words, and by chance."""
    setting, seed = name.split("/")
    manifest = read_manifest(setting, int(seed))
    by_client = {client: [examples[i] for i in splits["train"]] for client, splits in manifest.items()}
    owners = [client for client, own in by_client.items() for _ in own]
    everything = [example for own in by_client.values() for example in own]
    embeddings = embed([_source(example) for example in everything]).double().cpu().numpy()
    by_topic, topics_by_chance = between_clients(topic_counts(embeddings, topics), owners)
    by_word, words_by_chance = between_clients(word_counts([example.target for example in everything]), owners)
    return {
        "topics": by_topic,
        "words": by_word,
        "by_chance": {"topics": topics_by_chance, "words": words_by_chance},
        "examples": {client: len(own) for client, own in by_client.items()},
    }


def _source(example: Conversation) -> str:
    return "\n".join(f"{turn.speaker}: {turn.text}" for turn in example.turns) or example.query
