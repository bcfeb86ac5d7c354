"""Decoding for several runs in turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.model.backbone import Row
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.entry import Entry
from pipeline.runs import decoding
from pipeline.runs.decoding import Reading, decode, steps_of
from pipeline.runs.jobs import DecodingJob
from pipeline.tasks.task import Prediction

RULE = DecodingRule(beams=1, length_penalty=1.0, no_repeat_ngram=3, min_tokens=0, max_tokens=8)
BEFORE = Prediction("before", True)


class Rounding:
    """A task whose summaries depend on the batch: each names what was written with it, its own first."""

    def predict(self, _backbone: object, prefixes: Sequence[str], rows: Sequence[Row], _rule: object) -> list[Any]:
        batch = "".join(f"{prefixes[row.source]}{row.adapter}" for row in rows)
        return [Prediction(f"{prefixes[row.source]}{row.adapter} in {batch}", True) for row in rows]


@pytest.fixture(autouse=True)
def _task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sources fit into a batch; what is read of one is its name."""
    monkeypatch.setattr(decoding, "load_task", lambda _name: Rounding())
    monkeypatch.setattr(decoding, "SOURCE_BYTES", 3)
    monkeypatch.setattr(decoding, "read_adapter", lambda path: path.name)
    monkeypatch.setattr(decoding, "on_device", lambda adapter, _device: adapter)
    monkeypatch.setattr(Reading, "prefix", lambda _self, _job, entry, for_generation: entry.id)
    monkeypatch.setattr(DecodingJob, "unread", lambda _self: [])


def job(folder: Path, run: str, examples: str = "1234567", kept: str = "") -> DecodingJob:
    """A run of one client with these examples, the shortest first; of some it has a summary already."""
    tests = [("A", Entry(one, f"key{one}", 1, ord(one))) for one in examples]
    order: Any = SimpleNamespace(rule=RULE, task="t")
    made = DecodingJob(run, order, tests, (90, 8), ("", ""), {"A": Path(run)}, {"A": run}, folder / f"{run}.json")
    made.keep(dict.fromkeys(kept, BEFORE))
    return made


def decoded(*jobs: DecodingJob, together: int = 1) -> dict[str, dict[str, str]]:
    """Run -> example -> what was written, when these are decoded in one call."""
    backbone: Any = SimpleNamespace(device="cpu", bytes_of_source=lambda _: 1, check_lengths=lambda *_: None)
    steps, counted = steps_of(jobs), list[int]()
    decode(jobs, backbone, {}, counted.append, together=together)
    assert sum(counted) == steps, "what progress was told"
    return {one.run_id: {name: made.text for name, made in one.made().items()} for one in jobs}


def test_sources_of_like_length_share_a_batch(tmp_path: Path) -> None:
    """Seven are three batches: the shortest three, and twice two."""
    found = decoded(job(tmp_path, "a", "7254361"))["a"]
    assert {text.partition(" in ")[2] for text in found.values()} == {"1a2a3a", "4a5a", "6a7a"}
    assert found["2"] == "2a in 1a2a3a"


def test_what_a_run_writes_depends_on_no_run_beside_it(tmp_path: Path) -> None:
    """Neither on a fresh one, nor on one that is half done, nor on one with another test set."""
    alone = decoded(job(tmp_path / "alone", "a"))["a"]
    others = [job(tmp_path, "b"), job(tmp_path, "c", kept="123"), job(tmp_path, "d", "12")]
    found = decoded(*others, job(tmp_path, "a"))
    assert found["a"] == alone
    assert found["d"] == {"1": "1d in 1d2d", "2": "2d in 1d2d"}


def test_batches_are_smaller_where_they_would_have_too_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows at once: seven examples are four batches, and twice as many where two jobs share them."""
    monkeypatch.setattr(decoding, "ROWS", 2)
    assert decoded(job(tmp_path, "a"))["a"]["1"] == "1a in 1a2a"
    assert decoded(job(tmp_path, "b"), job(tmp_path, "c"), together=2)["b"]["1"] == "1b in 1b1c"


def test_jobs_that_are_decoded_together_share_their_batches(tmp_path: Path) -> None:
    """Of three jobs two, and the third alone."""
    found = decoded(job(tmp_path, "a"), job(tmp_path, "b"), job(tmp_path, "c"), together=2)
    assert found["b"]["7"] == "7b in 6a6b7a7b"
    assert found["c"]["7"] == "7c in 6c7c"


def test_a_finished_job_shares_the_batches_of_another_and_keeps_its_summaries(tmp_path: Path) -> None:
    found = decoded(job(tmp_path, "a", kept="1234567"), job(tmp_path, "b"), together=2)
    assert found["b"]["7"] == "7b in 6a6b7a7b"
    assert set(found["a"].values()) == {"before"}


def test_a_stopped_batch_is_written_again_whole_and_a_finished_one_is_not(tmp_path: Path) -> None:
    """One of the first three was kept, and both of the last two."""
    fresh = decoded(job(tmp_path / "fresh", "a"))["a"]
    assert decoded(job(tmp_path, "a", kept="167"))["a"] == fresh | {"6": "before", "7": "before"}


def test_a_run_without_test_examples_writes_nothing(tmp_path: Path) -> None:
    assert decoded(job(tmp_path, "a", ""), job(tmp_path, "b", "1")) == {"a": {}, "b": {"1": "1b in 1b"}}
