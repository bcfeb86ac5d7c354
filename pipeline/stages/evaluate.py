"""A run's predictions and adapters, scored an example at a time -> reports/scores/<run>.json; the lens beside it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pipeline import layout
from pipeline.encoded import Loader, read_encoded
from pipeline.evaluation.rouge import rouge_of
from pipeline.evaluation.similarity import similarities
from pipeline.evaluation.surface import length, repetition
from pipeline.federated.head import teacher_entropies
from pipeline.federated.local import token_cross_entropy
from pipeline.files import read_jsonl, write_json
from pipeline.model.adapter import Adapter, digest, on_device, read_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.entry import Entry
from pipeline.model.loading import choose_device, load_backbone
from pipeline.partitions.manifest import hash_order
from pipeline.progress import progress
from pipeline.spec import EvaluateSpec, read_spec

LENS_EXAMPLES = 2
"""References a client that the report's lens shows: the first in a fixed shuffle, not picked by hand."""


def run(run_id: str) -> None:
    began = time.monotonic()
    spec = read_spec(layout.stage_spec("evaluate", run_id), EvaluateSpec)
    encoded = read_encoded(run_id)
    device = choose_device(spec.device)
    backbone = load_backbone(layout.BACKBONE, spec.adapted_layers, device)
    loader = Loader(device)
    rows = _text_scores(run_id, spec)
    clients: dict[str, dict[str, Any]] = {}
    lens: list[dict[str, Any]] = []
    with progress(f"evaluate {run_id}", len(encoded.clients)) as advance:
        for client, splits in encoded.clients.items():
            adapters = _adapters(layout.adapters(run_id), client)
            scored = {name: adapter for name, adapter in adapters.items() if name != "teacher"}
            losses = _losses(backbone, loader, splits["test"], scored)
            for entry, tokens in zip(splits["test"], losses["best"], strict=True):
                rows[entry.id] |= {"loss_sum": float(tokens.double().sum()), "tokens": entry.tokens}
            losses.setdefault("last", losses["best"])
            clients[client] = {f"{name}_loss": _mean(tokens) for name, tokens in losses.items()}
            if "teacher" in adapters:
                lens += _lens(backbone, loader, client, splits["test"], adapters["teacher"])
            advance(1)
    meetings = {e["id"]: e["meeting"] for splits in encoded.index["clients"].values() for e in splits["test"]}
    examples = [{**row, "id": i, "meeting": meetings[i]} for i, row in rows.items()]
    write_json(layout.SCORES / f"{run_id}.json", {"clients": clients, "examples": examples})
    write_json(layout.LENS / f"{run_id}.json", lens)
    write_json(layout.timings() / "evaluate" / f"{run_id}.json", {"seconds": time.monotonic() - began})


def _text_scores(run_id: str, spec: EvaluateSpec) -> dict[str, dict[str, Any]]:
    predicted = read_jsonl(layout.PREDICTIONS / f"{run_id}.jsonl")
    references = [row["reference"] for row in predicted]
    predictions = [row["prediction"] for row in predicted]
    rouge = rouge_of(references, predictions, use_stemmer=spec.use_stemmer)
    cosine = similarities(references, predictions)
    return {
        row["id"]: {
            "client": row["client"],
            **scores,
            "similarity": similarity,
            "length": length(row["prediction"]),
            "repetition": repetition(row["prediction"]),
        }
        for row, scores, similarity in zip(predicted, rouge, cosine, strict=True)
    }


def _adapters(folder: Path, client: str) -> dict[str, Adapter]:
    """What a client's row is about (`best`), and beside it what exists of its teacher, last round and server."""
    names = {
        "best": f"{client}.safetensors",
        "teacher": f"{client}.teacher.safetensors",
        "last": f"{client}.last.safetensors",
        "server": "server.safetensors",
    }
    found = {name: folder / file for name, file in names.items() if name == "best" or (folder / file).is_file()}
    return {name: read_adapter(path) for name, path in found.items()}


def _losses(
    backbone: Backbone, loader: Loader, entries: list[Entry], adapters: Mapping[str, Adapter]
) -> dict[str, list[torch.Tensor]]:
    """Test loss of the references under each adapter, token by token; an adapter that comes twice is run once."""
    done: dict[str, list[torch.Tensor]] = {}
    result = {}
    for name, adapter in adapters.items():
        key = digest(adapter)
        if key not in done:
            done[key] = token_cross_entropy(backbone, loader.training, entries, adapter)
        result[name] = done[key]
    return result


def _mean(tokens: list[torch.Tensor]) -> float:
    return float(torch.cat(tokens).double().mean())


def _lens(
    backbone: Backbone, loader: Loader, client: str, entries: list[Entry], teacher: Adapter
) -> list[dict[str, Any]]:
    """Reference summaries with the teacher's entropy at every token."""
    chosen = hash_order([entry.id for entry in entries])[:LENS_EXAMPLES]
    rows = []
    for entry in (entry for entry in entries if entry.id in chosen):
        prefixes = loader.training([entry.key])
        with torch.no_grad():
            hidden = backbone.target_hidden(prefixes, on_device(teacher, backbone.device))
        entropy = teacher_entropies(backbone.head, hidden)
        tokens = prefixes[0]["targets"].tolist()
        rows.append({"client": client, "id": entry.id, "pieces": backbone.pieces(tokens), "entropy": entropy.tolist()})
    return rows
