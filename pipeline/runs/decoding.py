"""Decoding for several runs in turn: runs with the same test set share one pass over its sources.

Decoding needs ten megabytes and more of a source, over all layers of a decoder. They are computed when needed and not
stored. The store caches the part of the same pass that a loss needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapter, on_device, read_adapter
from pipeline.model.backbone import Backbone, Prefix, Row
from pipeline.model.encoder import Encoder
from pipeline.model.entry import Entry
from pipeline.model.processor import return_large_tensors
from pipeline.model.store import PrefixStore
from pipeline.runs.encoding import Reading
from pipeline.runs.even_batches import in_batches
from pipeline.runs.jobs import Job
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.record import Json

SOURCE_BYTES = 1_500_000_000
"""Bytes of sources in a batch, approximately: decoding then takes 5.3 GiB at the laptop's scale."""
ROWS = 384
"""Rows in a batch, approximately: enough that weights are seldom read."""


class Sources:
    """Encodes test examples for decoding, and stores the part of each prefix that a loss needs.

    `stored` is called with 1 for each prefix that is stored.
    """

    def __init__(self, reading: Reading, examples: Json, stored: Callable[[int], None]) -> None:
        assert not isinstance(reading.model, Encoder)
        self.backbone: Backbone = reading.model
        self._reading, self._examples, self._stored = reading, examples, stored
        self._store = PrefixStore(layout.store())

    def prefix(self, job: Job, entry: Entry, *, for_generation: bool) -> Prefix:
        """Compute an example's prefix on the CPU; without `for_generation`, the part of it that a loss needs.

        Raises:
            QuorumError: the example was encoded for another plan, so the store would have it under a wrong key.
        """
        (window,) = self._reading.windows(self._examples[entry.id])
        if entry.key != self._reading.key(window):
            setting, run = job.order.setting, job.run_id.split("/")[0]
            raise QuorumError(f"{layout.encoded(setting, run)}: is of another plan; run `dvc repro encode@{setting}`")
        prefix, extra = self.backbone.encode(window, for_generation=for_generation)
        if not self._store.has(entry.key):
            self._store.put(entry.key, prefix)
            self._stored(1)
        return prefix | extra


def steps_of(jobs: Sequence[Job]) -> int:
    """Count the summaries that are still to be decoded and the prefixes that are still to be stored."""
    unread = {entry.key for job in jobs for _, entry in job.unread()}
    return sum(len(job.missing()) for job in jobs) + len(unread)


def decode(jobs: Sequence[Job], reading: Reading, examples: Json, advance: Callable[[int], None]) -> None:
    """Decode the missing summaries of jobs that share one order and have different paths.

    A batch of other examples rounds differently, and one different word changes the rest of a summary. So a batch
    always has the same examples of one job, independent of the other jobs and of where an earlier call stopped.

    At the end, prefixes that the store still lacks are stored for `evaluate`.

    Args:
        advance: counts each missing summary and each prefix that is stored. The sum is `steps_of`, unless an entry is
            damaged or another process stores some.
    """
    return_large_tensors()
    sources = Sources(reading, examples, advance)
    missing = {job.path: {entry.id for _, entry in job.missing()} for job in jobs}
    alike: dict[tuple[tuple[str, str, str], ...], list[Job]] = {}
    for job in jobs:
        if missing[job.path]:
            alike.setdefault(tuple((client, one.id, one.key) for client, one in job.tests), []).append(job)
    for group in alike.values():
        _decode_test_set(group, missing, sources, advance)
    for job in jobs:
        for _, entry in job.unread():
            sources.prefix(job, entry, for_generation=False)


def _decode_test_set(
    jobs: Sequence[Job],
    missing: Mapping[Path, Set[str]],
    sources: Sources,
    advance: Callable[[int], None],
) -> None:
    """Decode jobs with one test set, batch by batch: sources are read once, then each job's summaries are decoded."""
    first, backbone = jobs[0], sources.backbone
    rule = first.order.rule
    assert rule is not None, "summaries are missing"
    # Sources of similar length share a batch, so that it has little padding.
    tests = sorted(first.tests, key=lambda test: (test[1].source_tokens, test[1].key))
    longest = tests[-1][1].source_tokens
    backbone.check_lengths(longest, rule.max_tokens)
    rows = len(tests) * rule.beams
    count = max(-(-len(tests) * backbone.bytes_of_source(longest) // SOURCE_BYTES), -(-rows // ROWS))
    # The longest first: memory that its prefixes leave in many small pieces then fits those of the next.
    for batch in reversed(in_batches(tests, [1] * len(tests), count)):
        ids = {entry.id for _, entry in batch}
        unfinished = [job for job in jobs if ids & missing[job.path]]
        if not unfinished:
            continue
        prefixes = [sources.prefix(first, entry, for_generation=True) for _, entry in batch]
        for job in unfinished:
            _decode_batch(job, batch, prefixes, backbone)
            advance(len(ids & missing[job.path]))
        del prefixes  # frees their memory before the next batch is encoded


def _decode_batch(job: Job, batch: Sequence[tuple[str, Entry]], prefixes: Sequence[Prefix], backbone: Backbone) -> None:
    """Decode one batch with a job's adapters and save its predictions."""
    rule, task = job.order.rule, load_task(job.order.task)
    assert rule is not None
    adapters = _adapters(job, backbone)
    rows = [Row(place, adapters[client]) for place, (client, _) in enumerate(batch)]
    predictions = task.predict(backbone, prefixes, rows, rule)
    job.save({entry.id: one for (_, entry), one in zip(batch, predictions, strict=True)})


def _adapters(job: Job, backbone: Backbone) -> dict[str, Adapter]:
    """Client -> its adapter. Equal adapters are one object, which is then applied to all their rows at once."""
    files = {job.digests[client]: path for client, path in job.adapters.items()}
    read = {digest: on_device(read_adapter(path), backbone.device) for digest, path in files.items()}
    return {client: read[digest] for client, digest in job.digests.items()}
