"""What params.yaml means: an order a stage, which changes with what it depends on alone; and what ships is planned."""

from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import EXPERIMENTS, ROOT, a_processor_with
from planned import GONE, changed, other, params_of, planned, written

from pipeline.errors import QuorumError
from pipeline.evaluation.comparisons import read_comparisons
from pipeline.plan.checks import read_params, unshown
from pipeline.plan.orders import TrainOrder, planned_run
from pipeline.plan.reading import read_scales
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params
from pipeline.plan.training import left_out
from pipeline.stages import plan
from pipeline.workspace import layout
from pipeline.workspace.files import write_json, write_text

MEETINGS = ("zeroshot", "single", "fedavg", "fedkd", "fedselectkd", "tau-2", "both")
TRAINED = ("single", "fedavg", "fedkd", "fedselectkd", "tau-2", "both", "news")
DECODED = ("zeroshot", "single", "fedavg", "fedkd", "fedselectkd", "both")
STAGES = ("train", "predict", "evaluate")  # of a run, whose result has how it was computed
WITHOUT_TEXTS: dict[str, Any] = dict.fromkeys(("data.news", "settings.news", "runs.news"), GONE)
WITHOUT_TEXTS |= {"sources": ["qmsum", "samsum"], "backbones": ["tiny-llama"]}
LIMITS = {"settings.domains.source_tokens": 77, "data.qmsum.source_tokens": 88, "data.qmsum.max_tokens": 5}
RATE, VIEW, UNCACHED = "training.learning_rate", "learner.view", "training.learner.uncached"
DRAWN = "training.clients_per_round"
EVERY_SCALE = [(folder, scale) for folder in EXPERIMENTS for scale in read_scales(folder / "params.yaml")[1]]


def name_of(value: Path | str) -> str:
    return getattr(value, "name", str(value))


def of(stage: str, *runs: str) -> set[str]:
    return {f"{stage}/{run}" for run in runs}


READERS = of("encode", "domains", "both").union(*(of(stage, *MEETINGS) for stage in STAGES))
ALL_LEARNERS = READERS.union(of("encode", "news"), *(of(stage, "news") for stage in STAGES))
BATCHES = of("partition", "domains", "both", "news")
FORBIDDEN = [
    ("single", {"omit": ["sing*"], "scale": "small"}, "is omitted at scale small"),
    ("tau-2", {"runs.tau-2.kd_from_round": 9}, "kd_from_round: 9, but of 3 rounds"),
    ("single", {"runs.single.adapted_layers": 15}, "adapted_layers: 15, but tiny-llama has 4 decoder layers"),
]
VALUES = [
    # The run's own, else the data set's, else the file's; of 3 rounds two thirds are 2, and a tenth is 1.
    ({}, "train/news", "training.rounds", 3),
    ({"data.news.rounds": 5}, "train/news", "training.rounds", 5),
    ({"data.news.rounds": 5, "runs.news.rounds": 7}, "train/news", "training.rounds", 7),
    ({"runs.news.rounds": None}, "train/news", "training.rounds", 3),
    ({"data.news.clients_per_round": 2, "runs.news.clients_per_round": None}, "train/news", DRAWN, 2),
    ({"data.news.clients_per_round": 2, "runs.news.clients_per_round": "all"}, "train/news", DRAWN, None),
    ({"clients_per_round": 2, "data.news.clients_per_round": "all"}, "train/news", DRAWN, None),
    ({"runs.news.rounds_share": 0.6667}, "train/news", "training.rounds", 2),
    ({"runs.news.rounds_share": 0.1}, "train/news", "training.rounds", 1),
    ({"runs.news.prolonged": True, "added_rounds": 4}, "train/news", "training.rounds", 7),
    ({"data.news.seeds": [5, 6]}, "train/news", "seeds", [5, 6]),
    ({"data.news.seeds": [5, 6], "runs.news.seeds": [6]}, "train/news", "seeds", [6]),
    # A rate is the run's, else the file's, else its family's of the data set, else its family's of the file.
    ({}, "train/single", RATE, 0.1),
    ({}, "train/fedkd", RATE, 0.2),
    ({}, "train/fedavg", RATE, 0.3),
    ({"runs.fedavg.evaluate": "local"}, "train/fedavg", RATE, 0.2),
    ({"runs.fedavg.method": "AdaCentralized"}, "train/fedavg", RATE, 0.4),
    ({"runs.fedavg.client_optimizer": "sgd"}, "train/fedavg", RATE, 0.5),
    ({"local_start": "own"}, "train/fedkd", RATE, 0.1),
    ({"rates.local": GONE, "rates.adamw": 0.7}, "train/fedkd", RATE, 0.7),
    ({"data.qmsum.rates": {"local": 0.8}}, "train/fedkd", RATE, 0.8),
    ({"learning_rate": 0.9}, "train/fedkd", RATE, 0.9),
    ({"learning_rate": 0.9, "runs.fedkd.learning_rate": 0.6}, "train/fedkd", RATE, 0.6),
    # The first of several limits is the setting's.
    (LIMITS, "train/fedavg", f"{VIEW}.source_tokens", 77),
    (LIMITS, "train/both", f"{VIEW}.source_tokens", 88),
    (LIMITS, "train/both", f"{VIEW}.target_tokens", 60),
    (LIMITS, "predict/fedavg", "rule.max_tokens", 5),
    # The backbone's own two layers are no other number.
    ({}, "train/single", UNCACHED, False),
    ({"runs.single.dropout": 0.1, "runs.single.decode": False}, "train/single", UNCACHED, True),
    ({"runs.single.adapted_layers": 3}, "train/single", UNCACHED, True),
    ({"runs.single.adapted_layers": 2}, "train/single", UNCACHED, False),
    # A language model's bottleneck is its preset's, and LoRA's rank 8, where nothing else is set.
    (WITHOUT_TEXTS, "train/fedavg", "learner.above", "bottleneck"),
    (WITHOUT_TEXTS, "train/fedavg", "learner.size", 16),
    (WITHOUT_TEXTS | {"above": "lora"}, "train/fedavg", "learner.size", 8),
    (WITHOUT_TEXTS | {"size": 5, "runs.fedavg.size": 6}, "train/fedavg", "learner.size", 6),
]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tau": 4.0}, of("train", "fedselectkd")),
        ({"lambda": 0.6}, of("train", "fedkd", "fedselectkd")),
        ({"local_start": "own"}, of("train", "fedkd", "fedselectkd", "tau-2")),
        ({"learning_rate": 0.9}, of("train", *TRAINED)),
        ({"rounds": 4}, of("train", *TRAINED)),
        ({"clients_per_round": 2}, of("train", *set(TRAINED) - {"single"})),
        ({"keep_rounds": [1]}, of("train", "zeroshot", *TRAINED)),
        ({"batch_size": 2}, of("train", *TRAINED) | BATCHES),
        ({"added_rounds": 9}, set()),
        ({"source_tokens": 99}, READERS),
        ({"size": 4, "runs.news.above": "bottleneck"}, ALL_LEARNERS - of("encode", "domains", "both", "news")),
        ({"threads": 7}, ALL_LEARNERS),
        ({"max_tokens": 99}, of("predict", *DECODED)),
        ({"use_stemmer": True}, of("evaluate", "news", *MEETINGS)),
        ({"rouge_tokens": "unicode"}, of("evaluate", "news", *MEETINGS)),
        ({"queries": {"de": {"whole": "Fasse alles zusammen."}}}, set()),
        ({"sign_flips": 500}, {"analyze"}),
        ({"train_fraction": 0.3}, of("partition", "domains", "both")),
        ({"alpha": 0.3}, of("partition", "news")),
        ({"folds": {2: "first"}}, of("partition", "domains", "both", "news")),
        ({"data_source": "sample"}, of("ingest", "qmsum", "samsum", "20news")),
        ({"data.qmsum.span_end": "exclusive"}, of("prepare", "qmsum")),
        ({"data.news.take": {}}, of("partition", "news")),
        ({"data.news.classes": ["one", "two"]}, of("encode", "news")),
        ({"data.news.rounds": 7}, of("train", "news")),
        ({"runs.fedavg.rounds": 7}, of("train", "fedavg")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_knob_changes_the_orders_of_what_depends_on_it(change: dict[str, Any], expected: set[str]) -> None:
    """The report's order has the hash of every other, so it may change with all of them."""
    assert other(planned(), planned(**change)) - {"report"} == expected


@pytest.mark.parametrize("change", [{"train_fraction": 0.3}, {"rouge_tokens": "unicode"}], ids=["draw", "words"])
def test_a_result_is_written_anew_when_its_fingerprint_changes(change: dict[str, Any]) -> None:
    """Though fewer examples may be the same draw. Committed fingerprints are of orders without `latin`, the default."""
    before, after = (planned(**one)["evaluate/fedavg.json"] for one in ({"rouge_tokens": "latin"}, change))
    assert before["fingerprints"].keys() == after["fingerprints"].keys()
    assert before["fingerprints"] != after["fingerprints"]
    assert ("rouge_tokens" in before, "rouge_tokens" in after) == (False, "rouge_tokens" in change)


def test_summaries_of_own_meetings_are_asked_for_in_their_language() -> None:
    """In the row that the client names, or the first; without a row the order is as it was."""
    own = {"Klinik": {"folder": "data/own/K", "queries": "de"}, "Clinic": {"folder": "data/own/C"}}
    rows = {"fr": {"whole": "Résumez la réunion."}, "de": {"whole": "Fasse die Sitzung zusammen."}}
    asked = planned(own=own, queries=rows)["ingest/qmsum.json"]["own"]
    assert (asked["Klinik"]["query"], asked["Clinic"]["query"]) == (rows["de"]["whole"], rows["fr"]["whole"])
    assert "query" not in planned(own={"Clinic": own["Clinic"]})["ingest/qmsum.json"]["own"]["Clinic"]


def test_one_more_run_changes_no_order_of_another() -> None:
    """Nor what others train on: the index of its setting is written again."""
    more = {"runs.fedprox": {"setting": "domains", "method": "AdaFedProx", "mu": 1.0}}
    own = {f"{stage}/fedprox" for stage in ("train", "predict", "evaluate")}
    assert other(planned(), planned(**more)) == own | {"encode/domains", "report"}


def test_every_seed_of_a_run_is_a_row() -> None:
    orders = planned(seeds=[4, 7], **{"runs.single.seeds": [7]})
    rows = [row["id"] for row in orders["report.json"]["runs"] if row["name"] in ("single", "fedavg")]
    assert rows == ["single/7", "fedavg/4", "fedavg/7"]
    assert orders["partition/domains.json"]["seeds"] == [4, 7]
    assert orders["encode/domains.json"]["seeds"]["single"] == orders["train/single.json"]["seeds"] == [7]
    order = TrainOrder.model_validate(orders["train/fedavg.json"])
    assert [training and training.seed for training in map(order.at, order.seeds)] == [4, 7]


def test_a_run_that_is_not_planned_is_refused_with_the_nearest(short: Path) -> None:
    write_json(layout.order("report"), planned()["report.json"])
    assert planned_run("fedkd/1").name == "fedkd"
    with pytest.raises(QuorumError, match=r"fedkd/7: no such run at this seed in params.yaml; .* fedkd/1"):
        planned_run("fedkd/7")


def test_clients_before_aggregation_are_a_part_of_the_same_training() -> None:
    local = {"setting": "domains", "method": "AdaFedAvg", "evaluate": "local"}
    orders = planned(learning_rate=0.1, **{"runs.local": local})
    assert orders["train/local.json"]["training"] == orders["train/fedavg.json"]["training"]
    parts = {row["name"]: (row["part"], row["evaluate"]) for row in orders["report.json"]["runs"]}
    assert (parts["local"], parts["fedavg"]) == (("AdaFedAvg-local", "local"), ("AdaFedAvg", "server"))
    assert parts["single"] == ("AdaSingle", "local")


@pytest.mark.parametrize(("run", "changes", "reason"), FORBIDDEN)
def test_a_run_that_its_scale_or_backbone_forbids_is_left_out(run: str, changes: dict[str, Any], reason: str) -> None:
    orders = planned(**changes)
    assert {orders[f"{stage}/{run}.json"]["left_out"] for stage in ("train", "predict", "evaluate")} == {reason}
    assert orders["encode/domains.json"]["unread"] == [run]
    assert [name for name, order in orders.items() if order.get("left_out") and f"/{run}." not in name] == []


@pytest.mark.parametrize(("changes", "order", "key", "value"), VALUES)
def test_an_order_has_the_value_that_its_run_has(changes: dict[str, Any], order: str, key: str, value: Any) -> None:
    assert reduce(getitem, key.split("."), planned(**changes)[f"{order}.json"]) == value


def test_a_new_plan_names_few_changes_and_counts_many(short: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = ("analyze", *(f"train/{number}" for number in range(12)), "report")
    for orders in (("train/a", "report"), ("train/a", "report"), many):
        plan.report_changes({f"{order}.json": {"orders": len(orders)} for order in orders})
    assert capsys.readouterr().err.splitlines() == [
        "plan: 2 of 2 stages have a new order: train/a, report",
        "plan: nothing has changed",
        "plan: 14 of 14 stages have a new order: analyze, 12 of train, report",
    ]


def test_a_changed_file_of_ones_own_changes_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A meeting, a table of texts, and a partition of each seed: at the root that DVC names."""
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    own = tmp_path / "data" / "own"
    (own / "clinic").mkdir(parents=True)
    mine = {"task": "classify", "source": "mine", "file": "data/own/mine.csv", "backbone": "tiny-bert"}
    given = {"data": "mine", "kind": "given", "file": "data/own/part-{seed}.json"}
    more = {"sources": ["qmsum", "samsum", "20news", "mine"], "data.mine": mine, "settings.mine": given}
    params = params_of(own={"Clinic": {"folder": "data/own/clinic"}}, **more)
    before = resolve(params)
    changes = {"clinic/a.json": {"ingest/qmsum"}, "mine.csv": {"ingest/mine", "prepare/mine"}}
    for file, expected in (changes | {"part-2.json": {"partition/mine"}}).items():
        (own / file).write_text("new", encoding="utf-8")
        after = resolve(params)
        assert other(before, after) == expected
        before = after


def test_changed_weights_are_seen_and_change_the_plan(short: Path) -> None:
    hub = {"backbone": "bart-base", "backbones": ["bart-base"], "weights": "weights"}
    params = params_of(**WITHOUT_TEXTS | hub)
    orders: list[dict[str, Any]] = []
    for content in ("a", "ab"):
        write_text(short / "weights" / "model.safetensors", content)
        assert plan.outdated(params) == (["plan"] if orders else []), "a first plan is none"
        orders.append(resolve(params)["backbone/bart-base.json"])
        write_json(layout.order("backbone", "bart-base"), orders[-1])
        assert plan.outdated(params) == []
    assert orders[0]["weights"]["files"] != orders[1]["weights"]["files"]


def test_auto_is_what_the_machine_multiplies_natively(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another machine all that computes has another order, and `outdated` names the plan until it is new."""
    params, found = params_of(precision="auto"), []
    for flags, precision in (("avx2 avx512_bf16", "bf16"), ("avx2", "fp32")):
        a_processor_with(flags, short, monkeypatch)
        assert plan.outdated(params) == (["plan"] if found else []), "a first plan is none"
        found.append(resolve(params))
        write_json(layout.order("report"), found[-1]["report.json"])
        assert plan.outdated(params) == []
        assert found[-1]["report.json"]["precision"] == precision
        assert found[-1]["train/fedavg.json"]["training"]["learner"]["precision"] == precision
    assert {name.partition("/")[0] for name in other(*found)} == {"encode", "report", *STAGES}


def test_bf16_is_refused_where_a_machine_does_not_multiply_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_processor_with("avx2", tmp_path, monkeypatch)
    monkeypatch.chdir(written(tmp_path, changed(precision="bf16")).parent)
    with pytest.raises(QuorumError, match=r"^precision: bf16, but this machine does not multiply it natively [^\n]*$"):
        plan.run()


@pytest.mark.parametrize(("folder", "scale"), EVERY_SCALE, ids=name_of)
def test_every_run_is_shown_and_those_of_the_committed_scale_can_be_trained(folder: Path, scale: str) -> None:
    """tests/test_golden.py plans every experiment at every scale."""
    chosen, scales, _ = read_scales(folder / "params.yaml")
    params = Params.model_validate(scales[scale] | {"precision": "fp32"})
    assert unshown(params) == {}
    if scale == chosen:
        assert {run: reason for run in params.runs_of_scale if (reason := left_out(params, run))} == {}


@pytest.mark.parametrize("folder", EXPERIMENTS, ids=name_of)
def test_the_stages_are_the_roots_but_for_where_the_root_is(folder: Path) -> None:
    root, own = (yaml.safe_load((one / "dvc.yaml").read_text(encoding="utf-8")) for one in (ROOT, folder))
    assert own["stages"] == root["stages"]
    assert [set(one) for one in own["vars"]] == [set(one) for one in root["vars"]]
    (where,) = (one["root"] for one in own["vars"] if "root" in one)
    assert (folder / where).resolve() == ROOT


@pytest.mark.parametrize("folder", [f for f in EXPERIMENTS if (f / "comparisons.yaml").is_file()], ids=name_of)
def test_comparisons_have_different_names_and_are_of_planned_runs(folder: Path) -> None:
    """At the committed scale or another; a term may also be a setting."""
    params = read_params(folder / "params.yaml")
    comparisons = read_comparisons(folder / "comparisons.yaml").comparisons
    assert len({one.name for one in comparisons}) == len(comparisons)
    assert {term for one in comparisons for term in one.terms} <= {*params.runs, *params.settings}
