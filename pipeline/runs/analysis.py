"""Analyses beyond scores, of a run's models or of a setting's data: read from disk, computed, returned as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from pipeline.clients.manifest import Manifest
from pipeline.corpora.conversation import Conversation
from pipeline.evaluation.deciles import deciles
from pipeline.evaluation.divergence import between_clients, topic_counts, word_counts
from pipeline.federated.inputs import TaskBackbone
from pipeline.federated.token_figures import token_cross_entropy, token_entropies
from pipeline.model.adapter import read_adapter
from pipeline.model.loader import Loader
from pipeline.runs.index import read_encoded
from pipeline.tasks.similarity import embed
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def deciles_of(seen: TaskBackbone, loader: Loader, run_id: str) -> dict[str, list[dict[str, float]]]:
    """Group each client's validation tokens by the teacher's entropy: client -> its ten groups.

    The teacher is the adapter that the client received in its best round. The student is the client's own adapter at
    the end of the round before.
    """
    found = {}
    for client, splits in read_encoded(run_id).clients.items():
        student, teacher = (read_adapter(layout.adapter(run_id, client, which)) for which in ("before", "teacher"))
        losses = [torch.cat(token_cross_entropy(seen, loader.training, splits["val"], a)) for a in (teacher, student)]
        entropy = torch.cat(token_entropies(seen, loader.training, splits["val"], teacher))
        found[client] = [asdict(group) for group in deciles(entropy, -losses[0], -losses[1])]
    return found


def crossed_of(seen: TaskBackbone, loader: Loader, run_id: str) -> dict[str, dict[str, float]]:
    """Test each client's adapter on every client: train client -> test client -> mean loss, nats a token."""
    clients = read_encoded(run_id).clients
    found: dict[str, dict[str, float]] = {}
    for trained in clients:
        adapter = read_adapter(layout.adapter(run_id, trained))
        found[trained] = {
            tested: float(torch.cat(token_cross_entropy(seen, loader.training, splits["test"], adapter)).mean())
            for tested, splits in clients.items()
        }
    return found


def divergence_of(examples: Mapping[str, Conversation], name: str, topics: int) -> dict[str, Any]:
    """Measure how the training data of a setting's clients diverge, over topics and over words, and by chance."""
    manifest: Manifest = read_json(layout.manifest_file(layout.MORE, name))
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
