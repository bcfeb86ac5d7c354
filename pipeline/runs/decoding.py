"""Decoding for several runs in turn: those that summarize one test set read each source once for all.

What decoding needs of a source is ten megabytes and more, in all layers of a decoder. It is computed when it is needed
and not stored; of the same pass the store keeps what a loss needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

from pipeline.corpora.example import Example
from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapter, on_device, read_adapter
from pipeline.model.backbone import Backbone, Limits, Prefix, Row
from pipeline.model.entry import Entry
from pipeline.model.processor import return_large_tensors
from pipeline.model.store import PrefixStore, entry_key
from pipeline.runs.even_batches import in_batches
from pipeline.runs.jobs import DecodingJob
from pipeline.tasks.task import Task, load_task
from pipeline.workspace import layout

SOURCE_BYTES = 1_500_000_000
"""Bytes of sources in a batch, about: decoding then takes 5.3 GiB at the laptop's scale."""
ROWS = 384
"""Rows in a batch, about: enough that weights are seldom read."""


class Reading:
    """Reads test examples with the backbone: computes what decoding needs, and stores the part that a loss needs.

    `stored` is told of each prefix that is stored.
    """

    def __init__(
        self, backbone: Backbone, task: Task, examples: Mapping[str, Example], stored: Callable[[int], None]
    ) -> None:
        self._backbone, self._task, self._examples, self._stored = backbone, task, examples, stored
        self._store = PrefixStore(layout.store())

    def prefix(self, job: DecodingJob, entry: Entry, *, for_generation: bool) -> Prefix:
        """All that is frozen of an example, on the CPU; without `for_generation`, what a loss needs of it.

        Raises:
            QuorumError: the example was encoded for another plan, so that the store would have it under a wrong name.
        """
        rendered = self._task.render(self._backbone, self._examples[entry.id], Limits(*job.limits))
        if entry.key != entry_key(*job.known_by, self._backbone, rendered):
            raise QuorumError(
                f"{layout.encoded_index(job.run_id)}: is of another plan; run `dvc repro encode encode-more`"
            )
        prefix, extra = self._backbone.encode(rendered, for_generation=for_generation)
        if not self._store.has(entry.key):
            self._store.put(entry.key, prefix)
            self._stored(1)
        return prefix | extra


def steps_of(jobs: Sequence[DecodingJob]) -> int:
    """How many summaries are to be written and prefixes to be stored."""
    unread = {entry.key for job in jobs for _, entry in job.unread()}
    return sum(len(job.missing()) for job in jobs) + len(unread)


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
    same examples of the same job, whichever jobs are decoded beside it and wherever an earlier call was stopped.

    Prefixes that the store still lacks are stored in the end, for `evaluate`.

    Args:
        advance: is told of each summary that was missing and of each prefix that is stored: `steps_of`, unless an entry
            is damaged or another process stores some.
        together: so many models of one run have their rows in one batch, which saves time. What one of them writes
            depends on the others of its run, so that all of these are given in every call, finished ones too.
    """
    return_large_tensors()
    reading = Reading(backbone, load_task(jobs[0].order.task), examples, advance)
    missing = {job.path: {entry.id for _, entry in job.missing()} for job in jobs}
    alike: dict[tuple[tuple[str, str, str], ...], list[DecodingJob]] = {}
    for job in jobs:
        if together > 1 or missing[job.path]:
            alike.setdefault(tuple((client, one.id, one.key) for client, one in job.tests), []).append(job)
    for group in alike.values():
        if any(missing[job.path] for job in group):
            _write(_shares(group, together), together, missing, backbone, reading, advance)
    for job in jobs:
        for _, entry in job.unread():
            reading.prefix(job, entry, for_generation=False)


def _shares(jobs: Sequence[DecodingJob], together: int) -> list[list[DecodingJob]]:
    """Jobs whose rows are in one batch: of one run, and at most so many."""
    own: dict[str, list[DecodingJob]] = {}
    for job in jobs:
        own.setdefault(job.run_id, []).append(job)
    return [run[at : at + together] for run in own.values() for at in range(0, len(run), together)]


def _write(
    shares: Sequence[Sequence[DecodingJob]],
    together: int,
    missing: Mapping[Path, Set[str]],
    backbone: Backbone,
    reading: Reading,
    advance: Callable[[int], None],
) -> None:
    """Of jobs with one test set, a batch at a time: its sources are read once, then each share's summaries written."""
    first = shares[0][0]
    rule = first.order.rule
    assert rule is not None, "summaries are missing"
    # Sources of like length share a batch, so that little of it is padding.
    tests = sorted(first.tests, key=lambda test: (test[1].source_tokens, test[1].key))
    longest = tests[-1][1].source_tokens
    backbone.check_lengths(longest, rule.max_tokens)
    rows = len(tests) * rule.beams * together
    count = max(-(-len(tests) * backbone.bytes_of_source(longest) // SOURCE_BYTES), -(-rows // ROWS))
    # The longest first: memory that its prefixes leave in many small pieces then fits those of the next.
    for batch in reversed(in_batches(tests, [1] * len(tests), count)):
        ids = {entry.id for _, entry in batch}
        waiting = [[job for job in share if ids & missing[job.path]] for share in shares]
        if not any(waiting):
            continue
        prefixes = [reading.prefix(first, entry, for_generation=True) for _, entry in batch]
        for share, keeping in zip(shares, waiting, strict=True):
            if keeping:
                _write_batch(share, {job.path for job in keeping}, batch, prefixes, backbone)
                advance(sum(len(ids & missing[job.path]) for job in keeping))
        del prefixes  # before the next ones are made


def _write_batch(
    share: Sequence[DecodingJob],
    keeping: Set[Path],
    batch: Sequence[tuple[str, Entry]],
    prefixes: Sequence[Prefix],
    backbone: Backbone,
) -> None:
    """All jobs of the share have their rows in the batch; those with one of these paths keep what comes out."""
    rule, task = share[0].order.rule, load_task(share[0].order.task)
    assert rule is not None
    adapters = [_adapters(job, backbone) for job in share]
    rows = [Row(place, own[client]) for place, (client, _) in enumerate(batch) for own in adapters]
    made = task.predict(backbone, prefixes, rows, rule)
    for at, job in enumerate(share):
        if job.path in keeping:
            job.keep({entry.id: one for (_, entry), one in zip(batch, made[at :: len(share)], strict=True)})


def _adapters(job: DecodingJob, backbone: Backbone) -> dict[str, Adapter]:
    """Client -> its adapter; equal ones are one object, which is then applied to all their rows at once."""
    files = {job.digests[client]: path for client, path in job.adapters.items()}
    read = {digest: on_device(read_adapter(path), backbone.device) for digest, path in files.items()}
    return {client: read[digest] for client, digest in job.digests.items()}
