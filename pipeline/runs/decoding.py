"""Decoding for several runs in turn: those that summarize one test set read each source once for all.

What decoding needs of a source is ten megabytes and more, in all layers of a decoder. It is computed when it is needed
and not stored; of the same pass the store keeps what a loss needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pipeline.corpora.example import Example
from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapter, on_device, read_adapter
from pipeline.model.backbone import Backbone, Limits, Prefix, Row
from pipeline.model.entry import Entry
from pipeline.model.large_tensors import give_back_large_tensors
from pipeline.model.store import PrefixStore, entry_key
from pipeline.runs.jobs import DecodingJob
from pipeline.tasks.task import Task, load_task
from pipeline.workspace import layout

SOURCE_BYTES, ROWS = 1_500_000_000, 384
"""What is decoded at once, about: enough to read the weights seldom, few enough for 5 GiB at laptop scale."""

T = TypeVar("T")


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
    *,
    together: int = 1,
) -> None:
    """Write the missing summaries of jobs with one order, no two of one path.

    Products of other batches round otherwise, and one other word changes the rest of a summary. So a batch holds the
    same examples of one job, whichever jobs are decoded beside it and wherever an earlier call was stopped.

    What is not summarized, or was by an earlier call, is read all the same: `evaluate` finds its prefix in the store.

    Args:
        together: so many jobs share a batch, which takes half the time; for jobs that are always decoded together.
    """
    give_back_large_tensors()
    reading = Reading(backbone, load_task(jobs[0].order.task), examples)
    alike: dict[tuple[tuple[str, str], ...], list[DecodingJob]] = {}
    for job in jobs:
        if together > 1 or job.missing():
            alike.setdefault(tuple((client, entry.key) for client, entry in job.tests), []).append(job)
    for group in alike.values():
        _decode([group[at : at + together] for at in range(0, len(group), together)], backbone, reading, advance)
    for job in jobs:
        for _, entry in job.unread():
            reading.prefix(job, entry, for_generation=False)
            advance(1)


def _decode(
    shares: Sequence[Sequence[DecodingJob]], backbone: Backbone, reading: Reading, advance: Callable[[int], None]
) -> None:
    """Of jobs with one test set, a batch at a time: its sources are read once, then each share's summaries written."""
    jobs = [job for share in shares for job in share]
    rule, missing = jobs[0].order.rule, {job.path: {entry.id for _, entry in job.missing()} for job in jobs}
    if rule is None or not any(missing.values()):
        return
    # Sources of like length share a batch, so that little of it is padding.
    tests = sorted(jobs[0].tests, key=lambda test: (test[1].source_tokens, test[1].key))
    longest = tests[-1][1].source_tokens
    backbone.check_lengths(longest, rule.max_tokens)
    rows = len(tests) * rule.beams * len(shares[0])
    count = max(-(-len(tests) * backbone.bytes_of_source(longest) // SOURCE_BYTES), -(-rows // ROWS))
    # The longest first: what its sources leave is then large enough for the next ones.
    for batch in reversed(in_batches(tests, [1] * len(tests), count)):
        still = {job.path: sum(entry.id in missing[job.path] for _, entry in batch) for job in jobs}
        if not any(still.values()):
            continue
        prefixes = [reading.prefix(jobs[0], entry, for_generation=True) for _, entry in batch]
        for share in (share for share in shares if any(still[job.path] for job in share)):
            _summarize(share, batch, prefixes, backbone)
            advance(sum(still[job.path] for job in share))
        del prefixes  # before the next ones are made


def _summarize(
    share: Sequence[DecodingJob], batch: Sequence[tuple[str, Entry]], prefixes: Sequence[Prefix], backbone: Backbone
) -> None:
    rule, task = share[0].order.rule, load_task(share[0].order.task)
    assert rule is not None
    adapters = [_adapters(job, backbone) for job in share]
    rows = [Row(place, own[client]) for place, (client, _) in enumerate(batch) for own in adapters]
    made = task.predict(backbone, prefixes, rows, rule)
    for at, job in enumerate(share):
        job.keep({entry.id: one for (_, entry), one in zip(batch, made[at :: len(share)], strict=True)})


def _adapters(job: DecodingJob, backbone: Backbone) -> dict[str, Adapter]:
    """Client -> its adapter; equal ones are one object, which is then applied to all their rows at once."""
    files = {job.digests[client]: path for client, path in job.adapters.items()}
    read = {digest: on_device(read_adapter(path), backbone.device) for digest, path in files.items()}
    return {client: read[digest] for client, digest in job.digests.items()}


def in_batches(keys: Sequence[T], rows: Sequence[int], count: int) -> list[list[T]]:
    """Keys in their order, in `count` batches of like many rows: a last one of two takes as many steps as a full one.

    Args:
        rows: how many rows each key has; a batch has at most one key's more than its share.
    """
    batches: list[list[T]] = [[] for _ in range(count)]
    before, total = 0, sum(rows)
    for key, own in zip(keys, rows, strict=True):
        batches[before * count // total].append(key)
        before += own
    return [batch for batch in batches if batch]
