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
from pipeline.runs.decoding import decode, in_batches
from pipeline.runs.jobs import DecodingJob
from pipeline.tasks.task import Prediction

RULE = DecodingRule(beams=1, length_penalty=1.0, no_repeat_ngram=3, min_tokens=0, max_tokens=8)


def test_batches_have_like_many_rows_and_keep_the_order() -> None:
    """Keys with 1, 1, 1, 3, 3 and 3 rows in three batches of about four; equal ones are cut evenly."""
    assert in_batches(list("abcdef"), [1, 1, 1, 3, 3, 3], 3) == [["a", "b", "c", "d"], ["e"], ["f"]]
    assert in_batches(list("abcde"), [7] * 5, 2) == [["a", "b", "c"], ["d", "e"]]
    assert in_batches(["a"], [2], 5) == [["a"]]


class Rounding:
    """A task whose summaries depend on the batch: each says how many rows were written with it."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def predict(self, _backbone: object, prefixes: Sequence[str], rows: Sequence[Row], _rule: object) -> list[Any]:
        self.sizes.append(len(rows))
        return [Prediction(f"{prefixes[row.source]} of {len(rows)} by {row.adapter}", True) for row in rows]


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Rounding:
    """Three sources fit into a batch; what is read of one is its name."""
    rounding = Rounding()
    monkeypatch.setattr(decoding, "load_task", lambda _name: rounding)
    monkeypatch.setattr(decoding, "SOURCE_BYTES", 3)
    monkeypatch.setattr(decoding, "read_adapter", lambda path: path.name)
    monkeypatch.setattr(decoding, "on_device", lambda adapter, _device: adapter)
    monkeypatch.setattr(decoding.Reading, "prefix", lambda _self, _job, entry, for_generation: entry.id)
    monkeypatch.setattr(DecodingJob, "unread", lambda _self: [])
    return rounding


def job(folder: Path, run: str, count: int = 7) -> DecodingJob:
    """A run of one client, so many examples, the longest first."""
    tests = [("A", Entry(f"e{n}", f"key{n}", 1, 90 - n)) for n in range(count)]
    order: Any = SimpleNamespace(rule=RULE, task="t")
    return DecodingJob(run, order, tests, (90, 8), ("", ""), {"A": Path(run)}, {"A": run}, folder / f"{run}.json")


def backbone() -> Any:
    return SimpleNamespace(device="cpu", bytes_of_source=lambda _: 1, check_lengths=lambda *_: None)


def written(folder: Path, *runs: str, kept: Sequence[str] = (), together: int = 1) -> dict[str, dict[str, Prediction]]:
    """What these runs write when they are decoded in one call; of those examples they have a summary already."""
    jobs = [job(folder, run) for run in runs]
    for one in jobs:
        one.keep({identity: Prediction("before", True) for identity in kept})
    counted: list[int] = []
    decode(jobs, backbone(), {}, counted.append, together=together)
    assert sum(counted) == len(jobs) * (7 - len(kept)), "what was missing"
    return {one.run_id: one.made() for one in jobs}


def test_what_a_run_writes_depends_on_no_run_beside_it(tmp_path: Path, task: Rounding) -> None:
    """Seven examples are three batches: the shortest three, and twice two."""
    together = written(tmp_path / "both", "a", "b")
    assert together == written(tmp_path / "a", "a") | written(tmp_path / "b", "b")
    assert together["a"]["e6"] == Prediction("e6 of 3 by a", True)
    assert together["b"]["e0"] == Prediction("e0 of 2 by b", True)


def test_jobs_that_are_decoded_together_share_their_batches(tmp_path: Path, task: Rounding) -> None:
    """Of three jobs two, and the third alone: the shortest three examples are six rows, and three."""
    found = written(tmp_path, "a", "b", "c", together=2)
    assert found["b"]["e6"] == Prediction("e6 of 6 by b", True)
    assert found["c"]["e6"] == Prediction("e6 of 3 by c", True)


def test_a_job_that_is_finished_still_shares_the_batches_of_one_that_is_not(tmp_path: Path, task: Rounding) -> None:
    finished = job(tmp_path, "a")
    finished.keep({f"e{n}": Prediction("before", True) for n in range(7)})
    decode([finished, job(tmp_path, "b")], backbone(), {}, lambda _: None, together=2)
    assert job(tmp_path, "b").made()["e6"] == Prediction("e6 of 6 by b", True)


def test_a_stopped_batch_is_written_again_whole_and_a_finished_one_is_not(tmp_path: Path, task: Rounding) -> None:
    """One of the first three was kept, and both of the last two."""
    found = written(tmp_path / "again", "a", kept=("e6", "e0", "e1"))["a"]
    assert task.sizes == [2, 3]
    fresh = written(tmp_path / "fresh", "a")["a"]
    assert {name: one for name, one in found.items() if name not in ("e0", "e1")} == {
        name: one for name, one in fresh.items() if name not in ("e0", "e1")
    }
    assert found["e0"] == Prediction("before", True)
