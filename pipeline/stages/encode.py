"""The frozen part of every example, computed once -> work/store; data/encoded/<run>.json indexes it a run."""

from __future__ import annotations

import shutil
import time
from typing import Any

from pipeline import layout
from pipeline.corpora.example import SPLITS, Example, read_examples
from pipeline.files import read_json, write_json
from pipeline.model.backbone import Backbone, Limits, Rendered
from pipeline.model.loading import backbone_digest, choose_device, load_backbone
from pipeline.model.store import PrefixStore, entry_key
from pipeline.partitions.manifest import Manifest
from pipeline.progress import progress, say
from pipeline.spec import EncodeSpec, read_spec


def run() -> None:
    began = time.monotonic()
    spec = read_spec(layout.stage_spec("encode"), EncodeSpec)
    shutil.rmtree(layout.ENCODED, ignore_errors=True)
    backbone = load_backbone(layout.BACKBONE, spec.adapted_layers, choose_device(spec.device))
    backbone.check_lengths(spec.source_tokens, spec.target_tokens)
    digest = backbone_digest(layout.BACKBONE)
    examples = read_examples(layout.PREPARED / "qmsum.jsonl")
    manifests: dict[str, Manifest] = {
        name: read_json(layout.PARTITIONS / f"{name}.json") for name in sorted(set(spec.manifests.values()))
    }
    limits = Limits(spec.source_tokens, spec.target_tokens)
    wanted = {
        identity: split == "test"
        for manifest in manifests.values()
        for splits in manifest.values()
        for split in SPLITS
        for identity in splits[split]
    }
    rendered = {identity: backbone.render(examples[identity], limits) for identity in wanted}
    keys = {identity: entry_key(digest, backbone, rendered[identity]) for identity in wanted}
    computed = _fill(PrefixStore(layout.store()), backbone, wanted, rendered, keys)
    for run_id, name in spec.manifests.items():
        clients = {
            client: {split: [_entry(i, keys[i], rendered[i], examples[i]) for i in splits[split]] for split in SPLITS}
            for client, splits in manifests[name].items()
        }
        write_json(layout.encoded_index(run_id), {"backbone": digest, "clients": clients})
    if computed:
        write_json(layout.timings() / "encode.json", {"seconds": time.monotonic() - began, "examples": computed})


def _fill(
    store: PrefixStore, backbone: Backbone, wanted: dict[str, bool], rendered: dict[str, Rendered], keys: dict[str, str]
) -> int:
    """Compute what the store lacks; how many examples that were."""
    missing = [i for i, generates in wanted.items() if not store.has(keys[i], for_generation=generates)]
    say(f"encode: {len(wanted)} examples, {len(wanted) - len(missing)} already in the store")
    if not missing:
        return 0
    with progress("encode", len(missing)) as advance:
        for identity in missing:
            prefix, extra = backbone.encode(rendered[identity], for_generation=wanted[identity])
            store.put(keys[identity], prefix, extra if wanted[identity] else None)
            advance(1)
    return len(missing)


def _entry(identity: str, key: str, rendered: Rendered, example: Example) -> dict[str, Any]:
    return {
        "id": identity,
        "key": key,
        "tokens": len(rendered.target),
        "source_tokens": len(rendered.source),
        "transcript_tokens": rendered.transcript_tokens,
        "kept_tokens": rendered.kept,
        "meeting": example.meeting,
    }
