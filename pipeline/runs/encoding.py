"""Encoding a group: stores the prefix of every training and validation example, and writes an index for each run.

Test examples are encoded by the generate stage: it needs their full prefixes, and stores the part that a loss needs.

A run beyond the main table has no clients where its setting is longer than the backbone's positions, or where the plan
leaves it out. The report says that it was not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.clients.manifest import Manifest
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS
from pipeline.errors import QuorumError
from pipeline.model.backbone import Backbone, Limits, Rendered
from pipeline.model.store import PrefixStore, entry_key
from pipeline.plan.orders import EncodeOrder
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import progress, say


def encode(
    order: EncodeOrder, group: str, backbone: Backbone, digest: str, examples: Mapping[str, Conversation]
) -> int:
    """Fill the store, write data/encoded/<run>.json for every run of a group, and count the examples computed.

    Args:
        digest: the backbone's digest, a part of the store's keys.

    Raises:
        QuorumError: the main table's examples are longer than the backbone reads.
    """
    store, task = PrefixStore(layout.store()), load_task(order.task)
    computed = 0
    clients: dict[str, dict[str, Any]] = {}
    token_ids: dict[str, dict[str, Rendered]] = {}
    for name, limits in order.limits.items():
        if not _fits(backbone, limits, group, name):
            clients[name] = {}
            continue
        manifest: Manifest = read_json(layout.manifest_file(group, name))
        split_of = {i: split for splits in manifest.values() for split in SPLITS for i in splits[split]}
        rendered = {i: task.render(backbone, examples[i], (), Limits(*limits))[0] for i in split_of}
        keys = {i: entry_key(digest, order.encoding, backbone, rendered[i]) for i in split_of}
        read = [i for i, split in split_of.items() if split != "test"]
        computed += _fill(name, store, backbone, {keys[i]: rendered[i] for i in read})
        token_ids[name] = rendered
        clients[name] = {
            client: {split: [_entry(i, keys[i], rendered[i], examples[i]) for i in splits[split]] for split in SPLITS}
            for client, splits in manifest.items()
        }
    for run_id, name in order.manifests.items():
        own = {} if run_id in order.left_out else clients[name]
        if run_id in order.uncached:
            own = _with_ids(own, token_ids.get(name, {}))
        index = {"backbone": digest, "encoding": order.encoding, "limits": order.limits[name], "clients": own}
        write_json(layout.encoded_index(run_id), index)
    return computed


def _fits(backbone: Backbone, limits: tuple[int, int], group: str, name: str) -> bool:
    try:
        backbone.check_lengths(*limits)
    except QuorumError as error:
        if group == layout.MAIN:
            raise
        say(f"encode {name}: left out, with all its runs: {error}")
        return False
    return True


def _with_ids(clients: dict[str, Any], rendered: dict[str, Rendered]) -> dict[str, Any]:
    """Add every example's token ids to an index."""
    return {
        client: {
            split: [e | {"source": rendered[e["id"]].source, "target": rendered[e["id"]].target} for e in entries]
            for split, entries in splits.items()
        }
        for client, splits in clients.items()
    }


def _fill(name: str, store: PrefixStore, backbone: Backbone, wanted: dict[str, Rendered]) -> int:
    """Compute and store the prefixes that the store lacks, by key; returns how many."""
    missing = [key for key in wanted if not store.has(key)]
    say(f"encode {name}: {len(wanted)} examples, {len(wanted) - len(missing)} already in the store")
    if not missing:
        return 0
    with progress(f"encode {name}", len(missing)) as advance:
        for key in missing:
            store.put(key, backbone.encode(wanted[key], for_generation=False)[0])
            advance(1)
    return len(missing)


def _entry(identity: str, key: str, rendered: Rendered, example: Conversation) -> dict[str, Any]:
    return {
        "id": identity,
        "key": key,
        "tokens": len(rendered.target),
        "source_tokens": len(rendered.source),
        "transcript_tokens": rendered.transcript_tokens,
        "kept_tokens": rendered.transcript_read,
        "meeting": example.meeting,
    }
