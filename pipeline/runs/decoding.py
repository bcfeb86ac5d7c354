"""Decoding for a dozen runs at once: those that summarize one test set read each source once, and once a step, for all.

What decoding needs of a source is ten megabytes and more, in all layers of a decoder. It is computed when it is needed
and not stored; of the same pass the store keeps what a loss needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipeline.corpora.example import Example
from pipeline.errors import QuorumError
from pipeline.model.adapter import on_device, read_adapter
from pipeline.model.backbone import Backbone, Limits, Prefix, Row
from pipeline.model.entry import Entry
from pipeline.model.store import PrefixStore, entry_key
from pipeline.runs.jobs import DecodingJob
from pipeline.tasks.task import Task, load_task
from pipeline.workspace import layout

SOURCE_BYTES, ROWS, RUNS = 1_000_000_000, 384, 12
"""What is decoded at once, about: enough to read the weights seldom, few enough for 5 GiB at laptop scale."""


class Reading:
    """Test examples as the backbone reads them: what decoding needs, computed; what a loss needs of it, kept."""

    def __init__(self, backbone: Backbone, task: Task, examples: Mapping[str, Example]) -> None:
        self._backbone, self._task, self._examples = backbone, task, examples
        self._store = PrefixStore(layout.store())

    def prefix(self, job: DecodingJob, entry: Entry, *, for_generation: bool) -> Prefix:
        """All that is frozen of an example, on the CPU; without `for_generation`, what a loss needs of it.

        Raises:
            QuorumError: the example was encoded for another plan, so that the store would have it under a wrong name.
        """
        rendered = self._task.render(self._backbone, self._examples[entry.id], Limits(*job.limits))
        if not entry.source and entry.key != entry_key(*job.known_by, self._backbone, rendered):
            raise QuorumError(
                f"{layout.encoded_index(job.run_id)}: is of another plan; run `dvc repro encode encode-more`"
            )
        prefix, extra = self._backbone.encode(rendered, for_generation=for_generation)
        if not entry.source and not self._store.has(entry.key):
            self._store.put(entry.key, prefix)
        return prefix | extra


def decode(
    jobs: Sequence[DecodingJob],
    backbone: Backbone,
    examples: Mapping[str, Example],
    advance: Callable[[int], None],
) -> None:
    """Write the missing summaries of jobs with one order, no two of one path, so many runs at a time.

    What is not summarized, or was by an earlier call, is read all the same: `evaluate` finds its prefix in the store.
    """
    reading = Reading(backbone, load_task(jobs[0].order.task), examples)
    for at in range(0, len(jobs), RUNS):
        _decode(jobs[at : at + RUNS], backbone, reading, advance)
    for job in jobs:
        for _, entry in job.unread():
            reading.prefix(job, entry, for_generation=False)
            advance(1)


def _decode(jobs: Sequence[DecodingJob], backbone: Backbone, reading: Reading, advance: Callable[[int], None]) -> None:
    rule = jobs[0].order.rule
    wanted: dict[str, list[tuple[DecodingJob, str, Entry]]] = {}
    for job in jobs:
        for client, entry in job.missing():
            wanted.setdefault(entry.key, []).append((job, client, entry))
    if rule is None or not wanted:  # another process was faster
        return
    longest = max(entry.source_tokens for asks in wanted.values() for _, _, entry in asks)
    backbone.check_lengths(longest, rule.max_tokens)
    # Clients with equal adapters share one object, which is then applied to all their rows at once.
    files = {job.digests[client]: path for job in jobs for client, path in job.adapters.items()}
    adapters = {name: on_device(read_adapter(path), backbone.device) for name, path in files.items()}
    task = load_task(jobs[0].order.task)
    # Sources of like length share a batch, so that little of it is padding.
    keys = sorted(wanted, key=lambda key: (wanted[key][0][2].source_tokens, key))
    rows = sum(map(len, wanted.values()))
    count = max(-(-len(keys) * backbone.bytes_of_source(longest) // SOURCE_BYTES), -(-rows * rule.beams // ROWS))
    for batch in in_batches(keys, [len(wanted[key]) for key in keys], count):
        asked = [(place, *ask) for place, key in enumerate(batch) for ask in wanted[key]]
        pairs = [Row(place, adapters[job.digests[client]]) for place, job, client, _ in asked]
        prefixes = [reading.prefix(wanted[key][0][0], wanted[key][0][2], for_generation=True) for key in batch]
        made = task.predict(backbone, prefixes, pairs, rule)
        for job in jobs:
            job.keep({ask[3].id: one for ask, one in zip(asked, made, strict=True) if ask[1] is job})
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
