"""What is predicted: which of a run's models, under which name texts are cached, and for several runs in turn."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from made_results import LEARNER

from pipeline.errors import QuorumError
from pipeline.model.adapter import write_adapter
from pipeline.model.backbone import Row
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.entry import Entry
from pipeline.model.tensor_file import save_checksums
from pipeline.plan.orders import PredictOrder
from pipeline.runs import decoding
from pipeline.runs.decoding import decode
from pipeline.runs.index import Index
from pipeline.runs.jobs import BEST, Job, job_of, model_file, steps_of
from pipeline.tasks.task import Prediction
from pipeline.workspace import layout

RULE = DecodingRule(beams=1, length_penalty=1.0, no_repeat_ngram=3, min_tokens=0, max_tokens=8)
BEFORE = Prediction("before", True)
EXAMPLES: Any = {one: one for one in "1234567"}
RUN = "fedavg/1"
HOW = {"code": {"a.py": "1"}, "packages": {"torch": "2"}, "task": "pipeline.tasks.summarize"}
WHERE = {"data": ["qmsum"], "setting": "domains", "seeds": [1]}
ORDER = PredictOrder.model_validate(HOW | WHERE | {"learner": LEARNER, "rule": DecodingRule(), "decode": True})


class Rounding:
    """A task whose summaries depend on the batch: each names what was written with it, its own first."""

    def predict(self, _backbone: object, prefixes: Sequence[Any], rows: Sequence[Row], _rule: object) -> list[Any]:
        own = [f"{int(prefixes[row.source]['targets'])}{row.adapter}" for row in rows]
        return [Prediction(f"{one} in {''.join(own)}", True) for one in own]


@pytest.fixture(autouse=True)
def _task(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sources fit into a batch; what is read of one is its name."""
    monkeypatch.setattr(decoding, "load_task", lambda _name: Rounding())
    monkeypatch.setattr(decoding, "SOURCE_BYTES", 3)
    monkeypatch.setattr(decoding, "read_adapter", lambda path: path.name)
    monkeypatch.setattr(decoding, "on_device", lambda adapter, _device: adapter)


def job(run: str, examples: str = "1234567", *, done: str = "", clients: str = "") -> Job:
    """A run with these examples, whose lengths are their digits; `done` have a summary already."""
    # The client of each example is also its adapter's name; without `clients` there is one client.
    owners = clients or "A" * len(examples)
    tests = [(client, Entry(one, f"key{one}", 1, int(one))) for client, one in zip(owners, examples, strict=True)]
    names = {client: client if clients else run for client in owners}
    adapters = {client: Path(name) for client, name in names.items()}
    order: Any = SimpleNamespace(rule=RULE, task="t", setting="s")
    found = Job(f"{run}/1", "", order, cast(Index, None), tests, adapters, names, Path(f"{run}.json"))
    found.save(dict.fromkeys(done, BEFORE))
    return found


def decoded(*jobs: Job, keys: str = "key") -> list[dict[str, str]]:
    """Decode jobs in one call; of each job: example -> its summary. `keys`: what keys of the store begin with."""
    backbone = SimpleNamespace(device="cpu", bytes_of_source=lambda _: 1, check_lengths=lambda *_: None)
    backbone.encode = lambda name, for_generation: ({"targets": torch.tensor([int(name)])}, {})
    reading: Any = SimpleNamespace(model=backbone, windows=lambda name: [name], key=lambda name: f"{keys}{name}")
    steps, counted = steps_of(jobs), list[int]()
    decode(jobs, reading, EXAMPLES, counted.append)
    assert sum(counted) == steps, "the progress bar ends at its total"
    assert steps_of(jobs) == 0
    return [{name: made.text for name, made in one.predictions().items()} for one in jobs]


@pytest.mark.parametrize(("rows", "batches"), [(384, {"1a2a3a", "4a5a", "6a7a"}), (2, {"1a2a", "3a4a", "5a6a", "7a"})])
def test_sources_of_like_length_share_a_batch(monkeypatch: pytest.MonkeyPatch, rows: int, batches: set[str]) -> None:
    """Of three sources, seven make three batches; of two rows, four."""
    monkeypatch.setattr(decoding, "ROWS", rows)
    (found,) = decoded(job("a", "7254361"))
    assert {text.partition(" in ")[2] for text in found.values()} == batches
    assert found["2"].startswith("2a in ")


def test_each_client_writes_with_its_own_adapter() -> None:
    assert decoded(job("a", "123", clients="xyx")) == [{"1": "1x in 1x2y3x", "2": "2y in 1x2y3x", "3": "3x in 1x2y3x"}]


def test_what_a_run_writes_depends_on_no_other_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on a fresh one, nor on one that is half done, nor on one with another test set or none."""
    (alone,) = decoded(job("a"))
    monkeypatch.chdir(tmp_path)
    jobs = job("b"), job("c", done="123"), job("e", ""), job("d", "12"), job("a"), job("f", done="167")
    _, _, none, other, found, stopped = decoded(*jobs)
    assert found == alone
    assert (none, other) == ({}, {"1": "1d in 1d2d", "2": "2d in 1d2d"})
    # A stopped batch is written again whole, and a finished one is not: one of the first three, and the last two.
    again = {name: text.replace("a", "f") for name, text in alone.items()}
    assert stopped == again | {"6": "before", "7": "before"}


def test_steps_are_missing_summaries_and_prefixes_each_once() -> None:
    """Two runs share seven sources; what was summarized before is read for its loss."""
    assert steps_of([job("a"), job("b")]) == 2 * 7 + 7
    finished = job("c", done="1234567")
    assert steps_of([finished]) == 7
    decoded(finished)
    assert finished.unread() == []


def test_an_example_that_was_encoded_for_another_plan_is_refused() -> None:
    with pytest.raises(QuorumError, match=r"s/a.json: is of another plan; run `dvc repro encode@s`"):
        decoded(job("a"), keys="another")


def save(owner: str, value: float, which: str = "") -> None:
    write_adapter(layout.adapter(RUN, owner, which), {"w": torch.tensor([value])})


def test_a_client_without_a_model_has_the_servers_and_without_a_best_one_the_evaluated() -> None:
    save("server", 0.0)
    save("A", 1.0)
    assert [model_file(RUN, client).stem for client in "AB"] == ["A", "server"]
    assert [model_file(RUN, client, BEST).stem for client in "AB"] == ["A", "server"]
    save("B", 2.0, BEST)
    assert model_file(RUN, "B", BEST).stem == "B.best"
    save_checksums(RUN)
    layout.adapter(RUN, "B", BEST).unlink()
    assert model_file(RUN, "B", BEST).stem == "B.best", "gone, and not replaced by the server's"
    with pytest.raises(QuorumError, match="has no model of A; run `dvc repro train@fedprox`"):
        model_file("fedprox/2", "A")


def name(digest: str = "d", key: str = "k", **changes: Any) -> str:
    """What the file of cached texts is called, of client A's example."""
    index, order = Index(digest, "e", (), {}, {}), ORDER.model_copy(update=changes)
    return job_of(RUN, "", order, index, [("A", Entry("x", key, 3))]).path.name


def test_cached_texts_are_known_by_what_decides_them() -> None:
    """The code, packages, task, rule, backbone, texts and model; not where and of what data they are."""
    save("A", 1.0)
    before = name()
    changes: list[dict[str, Any]] = [{"code": {"a.py": "2"}}, {"packages": {"torch": "3"}}, {"digest": "other"}]
    changes += [{"task": "pipeline.tasks.title"}, {"rule": DecodingRule(beams=2)}, {"key": "other"}]
    assert len({before, *(name(**change) for change in changes)}) == 7
    assert name(setting="other", seeds=[1, 2], data=["samsum"]) == before
    save("A", 3.0)
    assert name() != before
