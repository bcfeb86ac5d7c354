"""Which code a stage depends on, as hashes: a comment changes none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from planned import planned

from pipeline.plan import code as closure


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


def test_an_order_has_the_part_of_the_task_that_its_stage_calls() -> None:
    """Scores by ROUGE need no decoding, and training needs neither."""
    orders = planned()
    codes = {stage: orders[f"{stage}.json"]["code"] for stage in ("prepare/qmsum", "encode/domains")}
    codes |= {stage: orders[f"{stage}/fedavg.json"]["code"] for stage in ("train", "predict", "evaluate")}
    assert all("pipeline.tasks.summarize" in code for code in codes.values())
    assert {stage for stage, code in codes.items() if "pipeline.tasks.rouge" in code} == {"evaluate"}
    assert {stage for stage, code in codes.items() if "pipeline.model.generation" in code} == {"predict"}


def test_a_training_depends_on_its_own_algorithm_and_objective() -> None:
    """A new way to distil trains no run of AdaFedAvg again, and neither does another check of params.yaml."""
    orders = planned()
    code = {name: set(orders[f"train/{name}.json"]["training"]["code"]) for name in ("fedavg", "fedselectkd")}
    distils = "pipeline.federated.objectives.distillation"
    assert ({"pipeline.federated.algorithms.fedavg"} <= code["fedavg"], distils in code["fedselectkd"]) == (True, True)
    others = {"pipeline.federated.algorithms.single", "pipeline.federated.algorithms", "pipeline.plan.schema", distils}
    assert not others & code["fedavg"]
