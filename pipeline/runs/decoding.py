"""Decoding for several runs in turn: runs with the same test set share one pass over its sources.

Decoding needs ten megabytes and more of a source, over all layers of a decoder. They are computed when needed and not
stored. The store caches the part of the same pass that a loss needs.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from pipeline.errors import QuorumError
from pipeline.model.adapter import on_device, read_adapter
from pipeline.model.backbone import Backbone, Prefix, Row
from pipeline.model.encoder import Encoder
from pipeline.model.entry import Entry
from pipeline.model.processor import return_large_tensors
from pipeline.model.store import PrefixStore
from pipeline.plan.orders import PredictOrder
from pipeline.runs.encoding import Reading
from pipeline.runs.jobs import Job
from pipeline.tasks.task import Prediction, load_task
from pipeline.workspace import layout
from pipeline.workspace.record import Json

SOURCE_BYTES = 1_500_000_000
"""Bytes of sources in a batch, approximately: decoding then takes 5.3 GiB at the laptop's scale."""
ROWS = 384  # rows in a batch, approximately: enough that weights are seldom read

Tests = Sequence[tuple[str, Entry]]  # (Client, entry) of test examples


def decode(jobs: Sequence[Job], reading: Reading, examples: Json, advance: Callable[[int], None]) -> None:
    """Decode the missing summaries of jobs that share one order and have different paths.

    A batch of other examples rounds differently, and one different word changes the rest of a summary. So a batch
    always has the same examples of one job, independent of the other jobs and of where an earlier call stopped.

    At the end, prefixes that the store still lacks are stored for the losses.

    `advance`: counts each missing summary and each prefix that is stored. The sum is `steps_of`, unless an entry is
    damaged or another process stores some. Raises QuorumError if an example was encoded for another plan, so the store
    would have it under a wrong key.
    """
    return_large_tensors()
    backbone, store = reading.model, PrefixStore(layout.store())
    assert not isinstance(backbone, Encoder)

    def prefix(job: Job, entry: Entry, *, for_generation: bool) -> Prefix:
        """An example's prefix on the CPU; without `for_generation`, the part of it that a loss needs."""
        (window,) = reading.windows(examples[entry.id])
        if entry.key != reading.key(window):
            setting, run = job.order.setting, job.run_id.split("/")[0]
            raise QuorumError(f"{layout.encoded(setting, run)}: is of another plan; run `dvc repro encode@{setting}`")
        found, extra = backbone.encode(window, for_generation=for_generation)
        if not store.has(entry.key):
            store.put(entry.key, found)
            advance(1)
        return found | extra

    missing = {job.path: {entry.id for entry in job.missing()} for job in jobs}
    alike: dict[Tests, list[Job]] = {}
    for job in jobs:
        if missing[job.path]:
            alike.setdefault(tuple(job.tests), []).append(job)
    for tests, group in alike.items():
        for batch in _batches(backbone, group[0].order, tests):
            ids = {entry.id for _, entry in batch}
            if unfinished := [job for job in group if ids & missing[job.path]]:
                prefixes = [prefix(group[0], entry, for_generation=True) for _, entry in batch]
                for job in unfinished:
                    job.save(_decoded(backbone, job, batch, prefixes))
                    advance(len(ids & missing[job.path]))
                del prefixes  # frees their memory before the next batch is encoded
    for job in jobs:
        for entry in job.unread():
            prefix(job, entry, for_generation=False)


def _batches(backbone: Backbone, order: PredictOrder, tests: Tests) -> Sequence[Tests]:
    """Tests in batches of similar size; a last batch of two rows would take as many steps as a full one."""
    assert order.rule is not None, "summaries are missing"
    # Sources of similar length share a batch, so that it has little padding.
    tests = sorted(tests, key=lambda test: (test[1].source_tokens, test[1].key))
    longest = tests[-1][1].source_tokens
    backbone.check_lengths(longest, order.rule.max_tokens)
    size = len(tests) * backbone.bytes_of_source(longest)
    count = max(-(-size // SOURCE_BYTES), -(-len(tests) * order.rule.beams // ROWS))
    numbered = groupby(enumerate(tests), key=lambda pair: pair[0] * count // len(tests))
    # The longest first: memory that its prefixes leave in many small pieces then fits those of the next.
    return [[test for _, test in batch] for _, batch in numbered][::-1]


def _decoded(backbone: Backbone, job: Job, batch: Tests, prefixes: Sequence[Prefix]) -> dict[str, Prediction]:
    """Decode one batch with a job's adapters."""
    rule, task = job.order.rule, load_task(job.order.task)
    # Equal adapters are one object, which is then applied to all their rows at once.
    adapters = {digest: on_device(read_adapter(path), backbone.device) for digest, path in job.models.items()}
    rows = [Row(place, adapters[job.digests[client]]) for place, (client, _) in enumerate(batch)]
    predictions = task.predict(backbone, prefixes, rows, rule)
    return {entry.id: one for (_, entry), one in zip(batch, predictions, strict=True)}
