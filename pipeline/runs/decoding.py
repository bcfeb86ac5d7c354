"""Decoding for several runs in turn: runs with the same test set share one pass over its sources.

Decoding needs ten megabytes and more of a source, over all layers of a decoder. They are computed when needed and not
stored. The store caches the part of the same pass that a loss needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.model.adapter import on_device, read_adapter
from pipeline.model.backbone import Backbone, Prefix, Row
from pipeline.model.encoder import Encoder
from pipeline.model.entry import Entry
from pipeline.model.processor import return_large_tensors
from pipeline.model.store import PrefixStore
from pipeline.runs.encoding import Reading
from pipeline.runs.jobs import Job
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.record import Json

SOURCE_BYTES = 1_500_000_000
"""Bytes of sources in a batch, approximately: decoding then takes 5.3 GiB at the laptop's scale."""
ROWS = 384
"""Rows in a batch, approximately: enough that weights are seldom read."""

Tests = Sequence[tuple[str, Entry]]
"""(Client, entry) of test examples."""


def steps_of(jobs: Sequence[Job]) -> int:
    """Count the summaries that are still to be decoded and the prefixes that are still to be stored."""
    return sum(len(job.missing()) for job in jobs) + len({entry.key for job in jobs for entry in job.unread()})


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
    decoder = _Decoder(reading, examples, PrefixStore(layout.store()), advance)
    missing = {job.path: {entry.id for entry in job.missing()} for job in jobs}
    alike: dict[tuple[tuple[str, str, str], ...], list[Job]] = {}
    for job in jobs:
        if missing[job.path]:
            alike.setdefault(tuple((client, one.id, one.key) for client, one in job.tests), []).append(job)
    for group in alike.values():
        decoder.decode(group, missing)
    for job in jobs:
        for entry in job.unread():
            decoder.prefix(job, entry, for_generation=False)


@dataclass(frozen=True)
class _Decoder:
    """Encodes test examples for decoding, and stores the part of each prefix that a loss needs."""

    reading: Reading
    examples: Json
    store: PrefixStore
    advance: Callable[[int], None]

    @property
    def backbone(self) -> Backbone:
        assert not isinstance(self.reading.model, Encoder)
        return self.reading.model

    def prefix(self, job: Job, entry: Entry, *, for_generation: bool) -> Prefix:
        """Compute an example's prefix on the CPU; without `for_generation`, the part of it that a loss needs.

        Raises QuorumError if the example was encoded for another plan, so the store would have it under a wrong key.
        """
        (window,) = self.reading.windows(self.examples[entry.id])
        if entry.key != self.reading.key(window):
            setting, run = job.order.setting, job.run_id.split("/")[0]
            raise QuorumError(f"{layout.encoded(setting, run)}: is of another plan; run `dvc repro encode@{setting}`")
        prefix, extra = self.backbone.encode(window, for_generation=for_generation)
        if not self.store.has(entry.key):
            self.store.put(entry.key, prefix)
            self.advance(1)
        return prefix | extra

    def decode(self, jobs: Sequence[Job], missing: Mapping[Path, Set[str]]) -> None:
        """Decode jobs with one test set, batch by batch: sources are read once, then each job's summaries decoded."""
        for batch in self._batches(jobs[0]):
            ids = {entry.id for _, entry in batch}
            unfinished = [job for job in jobs if ids & missing[job.path]]
            if not unfinished:
                continue
            prefixes = [self.prefix(jobs[0], entry, for_generation=True) for _, entry in batch]
            for job in unfinished:
                self._decode_batch(job, batch, prefixes)
                self.advance(len(ids & missing[job.path]))
            del prefixes  # frees their memory before the next batch is encoded

    def _batches(self, job: Job) -> Sequence[Tests]:
        """A job's tests in batches of similar size; a last batch of two rows would take as many steps as a full one."""
        assert job.order.rule is not None, "summaries are missing"
        # Sources of similar length share a batch, so that it has little padding.
        tests = sorted(job.tests, key=lambda test: (test[1].source_tokens, test[1].key))
        longest = tests[-1][1].source_tokens
        self.backbone.check_lengths(longest, job.order.rule.max_tokens)
        size = len(tests) * self.backbone.bytes_of_source(longest)
        count = max(-(-size // SOURCE_BYTES), -(-len(tests) * job.order.rule.beams // ROWS))
        numbered = groupby(enumerate(tests), key=lambda pair: pair[0] * count // len(tests))
        # The longest first: memory that its prefixes leave in many small pieces then fits those of the next.
        return [[test for _, test in batch] for _, batch in numbered][::-1]

    def _decode_batch(self, job: Job, batch: Tests, prefixes: Sequence[Prefix]) -> None:
        """Decode one batch with a job's adapters and save its predictions."""
        rule, task = job.order.rule, load_task(job.order.task)
        assert rule is not None
        # Equal adapters are one object, which is then applied to all their rows at once.
        files = {job.digests[client]: path for client, path in job.adapters.items()}
        adapters = {digest: on_device(read_adapter(path), self.backbone.device) for digest, path in files.items()}
        rows = [Row(place, adapters[job.digests[client]]) for place, (client, _) in enumerate(batch)]
        predictions = task.predict(self.backbone, prefixes, rows, rule)
        job.save({entry.id: one for (_, entry), one in zip(batch, predictions, strict=True)})
