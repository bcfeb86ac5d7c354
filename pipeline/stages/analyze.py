"""What lies behind the scores -> reports/analysis: entropy deciles, train client by test domain, divergence."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from pipeline import layout
from pipeline.analysis.deciles import deciles
from pipeline.analysis.divergence import matrix, topic_counts, word_counts
from pipeline.analysis.orientation import ROWS
from pipeline.corpora.example import Example, read_all_examples
from pipeline.encoded import read_encoded
from pipeline.evaluation.rouge import rouge_of
from pipeline.evaluation.similarity import embed
from pipeline.federated.local import token_cross_entropy, token_entropies
from pipeline.files import empty_folder, read_json, write_json
from pipeline.loader import Loader
from pipeline.model.adapter import read_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.loading import choose_device, load_backbone
from pipeline.partitions.manifest import Manifest
from pipeline.progress import progress
from pipeline.spec import AnalyzeSpec, read_spec


def run() -> None:
    spec = read_spec(layout.stage_spec("analyze"), AnalyzeSpec)
    empty_folder(layout.ANALYSIS)
    device = choose_device(spec.device)
    backbone = load_backbone(layout.BACKBONE, spec.adapted_layers, device)
    loader = Loader(device)
    with progress("analyze", len(spec.distilling) + len(spec.crossed) + len(spec.manifests)) as advance:
        for run_id in spec.distilling:
            write_json(_path("deciles", run_id), _deciles(backbone, loader, run_id))
            advance(1)
        for run_id in spec.crossed:
            write_json(_path("crossed", run_id), _crossed(backbone, loader, run_id))
            advance(1)
        examples = read_all_examples(layout.prepared(layout.MORE))
        write_json(_path("orientation", "turns"), _orientation(examples, spec))
        for name in spec.manifests:
            write_json(_path("divergence", name), _divergence(examples, name, spec.topics))
            advance(1)


def _path(what: str, name: str) -> Path:
    return layout.ANALYSIS / what / f"{Path(name).name}.json"


def _orientation(examples: dict[str, Example], spec: AnalyzeSpec) -> dict[str, dict[str, dict[str, float]]]:
    """What cost nothing -> client -> its mean ROUGE, on the test sets of the main table."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, write in ROWS.items():
        found[name] = {}
        for client, splits in read_encoded(spec.tested).clients.items():
            own = [examples[entry.id] for entry in splits["test"]]
            scores = rouge_of([e.target for e in own], [write(e) for e in own], use_stemmer=spec.use_stemmer)
            found[name][client] = {m: round(fmean(row[m] for row in scores), 4) for m in scores[0]}
    return found


def _deciles(backbone: Backbone, loader: Loader, run_id: str) -> dict[str, list[dict[str, float]]]:
    """Client -> its ten groups of test tokens; the teacher is what the client was sent in its best round."""
    found = {}
    for client, splits in read_encoded(run_id).clients.items():
        folder = layout.adapters(run_id)
        student, teacher = (read_adapter(folder / f"{client}{end}.safetensors") for end in ("", ".teacher"))
        losses = [
            torch.cat(token_cross_entropy(backbone, loader.training, splits["test"], a)) for a in (teacher, student)
        ]
        entropy = torch.cat(token_entropies(backbone, loader.training, splits["test"], teacher))
        found[client] = [asdict(group) for group in deciles(entropy, -losses[0], -losses[1])]
    return found


def _crossed(backbone: Backbone, loader: Loader, run_id: str) -> dict[str, dict[str, float]]:
    """Train client -> test client -> mean loss of the reference, nats a token."""
    clients = read_encoded(run_id).clients
    found: dict[str, dict[str, float]] = {}
    for trained in clients:
        adapter = read_adapter(layout.adapters(run_id) / f"{trained}.safetensors")
        found[trained] = {
            tested: float(torch.cat(token_cross_entropy(backbone, loader.training, splits["test"], adapter)).mean())
            for tested, splits in clients.items()
        }
    return found


def _divergence(examples: dict[str, Example], name: str, topics: int) -> dict[str, Any]:
    """Between the training data of a setting's clients, over topics and over words."""
    manifest: Manifest = read_json(layout.PARTITIONS / layout.MORE / f"{name}.json")
    held = {client: [examples[i] for i in splits["train"]] for client, splits in manifest.items()}
    embeddings = {client: embed([_source(e) for e in own]).double().cpu().numpy() for client, own in held.items()}
    return {
        "topics": matrix(topic_counts(embeddings, topics)),
        "words": matrix(word_counts({client: [e.target for e in own] for client, own in held.items()})),
        "examples": {client: len(own) for client, own in held.items()},
    }


def _source(example: Example) -> str:
    return "\n".join(f"{turn.speaker}: {turn.text}" for turn in example.turns) or example.query
