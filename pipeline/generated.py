"""Decoding for several runs at once, and work/generated, which keeps what was decoded; see `company`.

Runs that summarize one test set read the same sources: decoded together, each source is read once a step for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline import layout
from pipeline.encoded import read_encoded
from pipeline.files import locked, read_json, sha256_json, write_json
from pipeline.loader import Loader
from pipeline.model.adapter import Adapter, digest, on_device, read_adapter
from pipeline.model.backbone import Backbone, Row
from pipeline.model.entry import Entry
from pipeline.model.generation import generate
from pipeline.spec import GenerateSpec, read_spec

SOURCE_BYTES, ROWS = 2_000_000_000, 384
"""What is decoded at once, at most: enough to read the weights seldom, few enough for 8 GiB at laptop scale."""


@dataclass(frozen=True)
class Job:
    """One run's summaries: whose adapter writes which test example, and where the texts are kept."""

    run_id: str
    spec: GenerateSpec
    tests: list[tuple[str, Entry]]
    adapters: dict[str, Adapter]
    path: Path

    def texts(self) -> dict[str, str]:
        """Example id -> summary, as far as decoded."""
        if not self.path.is_file():
            return {}
        kept: dict[str, str] = read_json(self.path, remedy=f"delete {self.path} and run again")
        return kept

    def missing(self) -> list[tuple[str, Entry]]:
        """(client, entry) of what is still to be decoded; nothing where the run decodes none."""
        if self.spec.rule is None:
            return []
        done = self.texts()
        return [(client, entry) for client, entry in self.tests if entry.id not in done]

    def waits(self) -> bool:
        return bool(self.missing())


def job_of(run_id: str) -> Job:
    """A run's job.

    Raises:
        QuorumError: its spec, index or an adapter is missing or damaged.
    """
    spec = read_spec(layout.stage_spec("generate", run_id), GenerateSpec)
    encoded = read_encoded(run_id)
    adapters = {c: read_adapter(layout.adapters(run_id) / f"{c}.safetensors") for c in encoded.clients}
    tests = [(client, entry) for client, splits in encoded.clients.items() for entry in splits["test"]]
    digests = {client: digest(adapter) for client, adapter in adapters.items()}
    # Clients with equal adapters hold one object, which is then applied to all their rows at once.
    distinct = {digests[client]: adapter for client, adapter in adapters.items()}
    written = [[entry.id, entry.key, digests[client]] for client, entry in tests]
    key = sha256_json([spec.model_dump(mode="json"), encoded.index["backbone"], written])
    return Job(run_id, spec, tests, {c: distinct[d] for c, d in digests.items()}, layout.generated() / f"{key}.json")


def decode(jobs: Sequence[Job], backbone: Backbone, advance: Callable[[int], None]) -> None:
    """Write the missing summaries of jobs with one spec, no two of one path, a batch of sources at a time."""
    rule = jobs[0].spec.rule
    if rule is None:
        return
    longest = max(entry.source_tokens for job in jobs for _, entry in job.tests)
    backbone.check_lengths(longest, rule.max_tokens)
    wanted: dict[str, list[tuple[Job, str, Entry]]] = {}
    for job in jobs:
        for client, entry in job.missing():
            wanted.setdefault(entry.key, []).append((job, client, entry))
    if not wanted:  # another process was faster
        return
    moved = {id(a): on_device(a, backbone.device) for job in jobs for a in job.adapters.values()}
    loader = Loader(backbone.device)
    # Sources of like length share a batch, so that little of it is padding.
    keys = sorted(wanted, key=lambda key: (wanted[key][0][2].source_tokens, key))
    rows = sum(map(len, wanted.values())) * rule.beams
    batches = max(-(-len(keys) * backbone.bytes_of_source(longest) // SOURCE_BYTES), -(-rows // ROWS))
    # Batches of like size: a last one of two sources would cost as many steps as a full one.
    size = -(-len(keys) // batches)
    for at in range(0, len(keys), size):
        batch = keys[at : at + size]
        asked = [(place, *ask) for place, key in enumerate(batch) for ask in wanted[key]]
        pairs = [Row(place, moved[id(job.adapters[client])]) for place, job, client, _ in asked]
        texts = [backbone.text(new) for new in generate(backbone, loader.generation(batch), pairs, rule)]
        for job in jobs:
            new = {a[3].id: text for a, text in zip(asked, texts, strict=True) if a[1] is job}
            with locked(job.path.with_suffix(".lock")):
                write_json(job.path, job.texts() | new)
        advance(len(asked))
