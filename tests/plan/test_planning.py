"""What params.yaml means: a spec a stage, which changes with what the stage depends on and with nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shipped import SHIPPED, params_with

from pipeline.federated.algorithms import ALGORITHMS, ALONE, ZEROSHOT
from pipeline.plan.changes import brief
from pipeline.plan.outdated import outdated
from pipeline.plan.resolve import resolve, training_order
from pipeline.plan.schema import read_params
from pipeline.runs.training import bind
from pipeline.workspace import layout
from pipeline.workspace.files import write_json

METHODS = tuple(ALGORITHMS)


def test_methods_without_a_server_know_no_drawing_of_clients(tmp_path: Path) -> None:
    orders = resolve(read_params(params_with(tmp_path, clients_per_round=2)))
    found = {n: orders[f"train/main/{n}-1.json"]["training"]["clients_per_round"] for n in ("single", "fedavg")}
    assert found == {"single": None, "fedavg": 2}


def test_methods_without_a_server_are_those_that_do_not_communicate(tmp_path: Path) -> None:
    runs = {
        name: {"method": name, "mu": 1} if name in ("AdaFedProx", "Ditto") else {"method": name} for name in METHODS
    }
    runs["AdaFedOPT"]["server_learning_rate"] = 0.1
    params = read_params(params_with(tmp_path, runs=runs, more_runs={}))
    built = {name: bind(spec) for name in METHODS if (spec := training_order(params, name, 1).training) is not None}
    assert {name for name, algorithm in built.items() if not algorithm.communicates} == set(ALONE) - {ZEROSHOT}


def test_prolonged_runs_do_not_stop_early(tmp_path: Path) -> None:
    """They are compared at equal rounds: the laptop's three and two more."""
    orders = resolve(read_params(params_with(tmp_path)))
    training = orders["train/more/fedselectkd-longer-1.json"]["training"]
    assert (training["rounds"], training["patience"]) == (5, 5)


def test_averages_clients_before_aggregation_are_a_part_of_their_own(tmp_path: Path) -> None:
    rows = {row["name"]: row["kind"] for row in resolve(read_params(params_with(tmp_path)))["main.json"]["runs"]}
    assert (rows["fedavg"], rows["fedavg-local"], rows["single"]) == ("AdaFedAvg", "AdaFedAvg-local", "AdaSingle")


def test_runs_that_a_backbone_cannot_make_are_left_out(tmp_path: Path) -> None:
    """BART-base has 6 decoder layers, and its decoder reads no prompt that could be adapted."""
    fits, lacks = (resolve(read_params(params_with(tmp_path, backbone=name))) for name in ("smollm2-135m", "bart-base"))
    assert fits["encode/more.json"]["left_out"] == []
    assert lacks["encode/more.json"]["left_out"] == ["more/small-prompt-1", "more/small-n15-1"]
    assert lacks["evaluate/more/small-n15-1.json"]["adapted_layers"] == 3


def test_runs_that_would_distil_after_their_rounds_are_left_out(tmp_path: Path) -> None:
    """`-S rounds=1` makes all others: `fedselectkd-from-2` has no second round."""
    orders = resolve(read_params(params_with(tmp_path, rounds=1)))
    assert orders["encode/more.json"]["left_out"] == ["more/fedselectkd-from-2-1"]


def test_code_hashes_see_neither_comments_nor_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A docstring, a constant's too, is no code; a value is."""
    from pipeline.plan import code as closure

    monkeypatch.setattr(closure, "ROOT", tmp_path)
    texts = ('A = 1\n"""One."""\n', "A = 1  # one\n", '"""Two."""\n\n\nA = 1\n', "A = 2\n")
    for number, text in enumerate(texts):
        (tmp_path / f"m{number}.py").write_text(text)
    digests = [next(iter(closure.code_of(f"pipeline.m{number}").values())) for number in range(len(texts))]
    closure.imports_of.cache_clear()
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_a_preset_or_the_losses_are_no_cause_of_an_untrained_runs_summaries(tmp_path: Path) -> None:
    code = resolve(read_params(params_with(tmp_path)))["generate/main/zeroshot-1.json"]["code"]
    assert "pipeline.model.generation" in code
    assert not [name for name in code if name.startswith("pipeline.federated") or name.endswith(("presets", "obtain"))]


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)}


def ids(*names: str) -> set[str]:
    """Where the named runs' orders lie, in whichever group they are."""
    return {f"{'main' if name in SHIPPED['runs'] else 'more'}/{name}-1.json" for name in names}


ALL = ids(*SHIPPED["runs"], *SHIPPED["more_runs"])
DECODED = ids(*SHIPPED["runs"], *(n for n, row in SHIPPED["more_runs"].items() if row.get("decode", True)))
DISTILLING = {
    name: row
    for name, row in {**SHIPPED["runs"], **SHIPPED["more_runs"]}.items()
    if row["method"] in ("AdaFedKD", "AdaFedHardKD", "AdaFedSelectKD")
}
OF_TAU = ids(*(n for n, row in DISTILLING.items() if row["method"] == "AdaFedSelectKD" and "tau" not in row))
OF_LAMBDA = ids(*(n for n, row in DISTILLING.items() if "lambda" not in row))
PAGES = {"main.json", "report.json"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tau": 4.0}, {f"train/{i}" for i in OF_TAU} | PAGES),
        ({"lambda": 0.5}, {f"train/{i}" for i in OF_LAMBDA} | PAGES),
        ({"use_stemmer": True}, {f"evaluate/{i}" for i in ALL} | {"analyze.json"} | PAGES),
        ({"beams": 4}, {f"generate/{i}" for i in DECODED} | PAGES),
        ({"bootstrap_samples": 500}, PAGES),
        ({"span_end": "exclusive"}, {"prepare/qmsum.json"} | PAGES),
        ({"train_fraction": 0.3}, {"partition/main.json", "partition/more.json"} | PAGES),
    ],
)
def test_a_knob_changes_the_specs_of_what_depends_on_it_and_no_other(
    tmp_path: Path, change: dict[str, Any], expected: set[str]
) -> None:
    before, after = resolve(read_params(params_with(tmp_path))), resolve(read_params(params_with(tmp_path, **change)))
    assert changed(before, after) == expected


def test_many_changed_stages_are_counted_and_few_are_named() -> None:
    assert brief(["main", "train/main/fedavg-1"]) == "main, train/main/fedavg-1"
    many = ["backbone", *(f"train/more/{n}-1" for n in range(12)), "report"]
    assert brief(many) == "backbone, 12 of train/more, report"


def test_one_training_under_two_names_has_one_spec(tmp_path: Path) -> None:
    orders = resolve(read_params(params_with(tmp_path)))
    fedavg, local = orders["train/main/fedavg-1.json"], orders["train/main/fedavg-local-1.json"]
    assert fedavg["training"] == local["training"]
    assert (fedavg["evaluate"], local["evaluate"]) == ("server", "local")


def test_a_training_depends_on_its_own_algorithm_and_no_other(tmp_path: Path) -> None:
    code = resolve(read_params(params_with(tmp_path)))["train/main/fedavg-1.json"]["training"]["code"]
    assert "pipeline.federated.algorithms.fedavg" in code
    assert not {
        "pipeline.federated.algorithms.single",
        "pipeline.federated.algorithms",
        "pipeline.workspace.tracking",
        "pipeline.plan.schema",
    } & set(code)


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
