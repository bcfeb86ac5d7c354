"""Decoding for several runs at once: those that summarize one test set read each source once a step for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.model.adapter import on_device, read_adapter
from pipeline.model.backbone import Backbone, Row
from pipeline.model.entry import Entry
from pipeline.model.loader import Loader
from pipeline.runs.jobs import DecodingJob
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import locked, write_json

SOURCE_BYTES, ROWS, RUNS = 2_000_000_000, 384, 12
"""What is decoded at once, about: enough to read the weights seldom, few enough for 8 GiB at laptop scale."""


def decode(jobs: Sequence[DecodingJob], backbone: Backbone, advance: Callable[[int], None]) -> None:
    """Write the missing summaries of jobs with one order, no two of one path, so many runs at a time."""
    for at in range(0, len(jobs), RUNS):
        _decode(jobs[at : at + RUNS], backbone, advance)


def _decode(jobs: Sequence[DecodingJob], backbone: Backbone, advance: Callable[[int], None]) -> None:
    rule = jobs[0].order.rule
    if rule is None:
        return
    longest = max(entry.source_tokens for job in jobs for _, entry in job.tests)
    backbone.check_lengths(longest, rule.max_tokens)
    wanted: dict[str, list[tuple[DecodingJob, str, Entry]]] = {}
    for job in jobs:
        for client, entry in job.missing():
            wanted.setdefault(entry.key, []).append((job, client, entry))
    if not wanted:  # another process was faster
        return
    # Clients with equal adapters share one object, which is then applied to all their rows at once.
    files = {job.digests[client]: path for job in jobs for client, path in job.adapters.items()}
    adapters = {name: on_device(read_adapter(path), backbone.device) for name, path in files.items()}
    loader, task = Loader(layout.store(), backbone.device), load_task(jobs[0].order.task)
    # Sources of like length share a batch, so that little of it is padding.
    keys = sorted(wanted, key=lambda key: (wanted[key][0][2].source_tokens, key))
    rows = sum(map(len, wanted.values()))
    count = max(-(-len(keys) * backbone.bytes_of_source(longest) // SOURCE_BYTES), -(-rows * rule.beams // ROWS))
    for batch in in_batches(keys, [len(wanted[key]) for key in keys], count):
        asked = [(place, *ask) for place, key in enumerate(batch) for ask in wanted[key]]
        pairs = [Row(place, adapters[job.digests[client]]) for place, job, client, _ in asked]
        texts = task.predict(backbone, loader.generation(batch), pairs, rule)
        for job in jobs:
            new = {a[3].id: text for a, text in zip(asked, texts, strict=True) if a[1] is job}
            with locked(job.path.with_suffix(".lock")):
                write_json(job.path, job.texts() | new)
        advance(len(asked))


def in_batches(keys: Sequence[str], rows: Sequence[int], count: int) -> list[list[str]]:
    """Keys in their order, in `count` batches of like many rows: a last one of two takes as many steps as a full one.

    Args:
        rows: how many rows each key has; a batch has at most one key's more than its share.
    """
    batches: list[list[str]] = [[] for _ in range(count)]
    before, total = 0, sum(rows)
    for key, own in zip(keys, rows, strict=True):
        batches[before * count // total].append(key)
        before += own
    return [batch for batch in batches if batch]
