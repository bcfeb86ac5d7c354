"""A run's adapters on every client's test set -> reports/predictions/<run>.jsonl."""

from __future__ import annotations

import time

from pipeline import layout
from pipeline.corpora.example import read_examples
from pipeline.encoded import Loader, read_encoded
from pipeline.files import write_json, write_jsonl
from pipeline.model.adapter import read_adapter
from pipeline.model.generation import DecodingRule, generate
from pipeline.model.loading import choose_device, load_backbone
from pipeline.progress import progress
from pipeline.spec import GenerateSpec, read_spec

ROWS = 66
"""Sequences that are decoded together: enough to read the weights seldom, few enough for 8 GiB."""


def run(run_id: str) -> None:
    began = time.monotonic()
    spec = read_spec(layout.stage_spec("generate", run_id), GenerateSpec)
    encoded = read_encoded(run_id)
    examples = read_examples(layout.PREPARED / "qmsum.jsonl")
    device = choose_device(spec.device)
    backbone = load_backbone(layout.BACKBONE, spec.adapted_layers, device)
    loader = Loader(device)
    rule = DecodingRule(spec.beams, spec.length_penalty, spec.no_repeat_ngram, spec.min_tokens, spec.max_tokens)
    source_tokens = {
        e["id"]: e["source_tokens"] for splits in encoded.index["clients"].values() for e in splits["test"]
    }
    predictions: dict[str, str] = {}
    with progress(f"generate {run_id}", sum(len(splits["test"]) for splits in encoded.clients.values())) as advance:
        for client, splits in encoded.clients.items():
            adapter = read_adapter(layout.adapters(run_id) / f"{client}.safetensors")
            adapter = {name: tensor.to(device) for name, tensor in adapter.items()}
            # Sources of like length share a batch, so that little of it is padding.
            entries = sorted(splits["test"], key=lambda entry: source_tokens[entry.id])
            # Batches of like size: a last one of two rows would cost as many steps as a full one.
            batches = -(-len(entries) * spec.beams // ROWS)
            size = -(-len(entries) // batches)
            for at in range(0, len(entries), size):
                batch = entries[at : at + size]
                prefixes = loader.generation([entry.key for entry in batch], backbone)
                for entry, tokens in zip(batch, generate(backbone, prefixes, adapter, rule), strict=True):
                    predictions[entry.id] = backbone.text(tokens)
                advance(len(batch))
    rows = [
        {
            "id": entry.id,
            "client": client,
            "query": examples[entry.id].query,
            "reference": examples[entry.id].target,
            "prediction": predictions[entry.id],
        }
        for client, splits in encoded.clients.items()
        for entry in splits["test"]
    ]
    write_jsonl(layout.PREDICTIONS / f"{run_id}.jsonl", rows)
    write_json(layout.timings() / "generate" / f"{run_id}.json", {"seconds": time.monotonic() - began})
