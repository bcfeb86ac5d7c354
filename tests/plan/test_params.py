"""params.yaml: every mistake is one line that names the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT, a_processor_with
from shipped import DOMAINS, IID, SHIPPED, params_with

from pipeline.clients.setting import Balanced, Counts, Domains, Share
from pipeline.errors import QuorumError
from pipeline.federated.algorithms import fedselectkd
from pipeline.federated.objectives.threshold import Threshold
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params, read_params
from pipeline.plan.training import training_order


def settings(**changed: Any) -> dict[str, Any]:
    """The shipped settings, with some changed."""
    return {"settings": SHIPPED["settings"] | changed}


def on_laptop(setting: dict[str, Any], **sizes: Any) -> dict[str, Any]:
    """A setting with sizes of its own on the laptop alone."""
    return setting | {"sizes": {"laptop": sizes}}


EVEN: dict[str, Any] = {
    "kind": "balanced",
    "clients": ["Academic", "Product"],
    "counts": {"train": 8, "val": 4, "test": 4},
}
HUGE: dict[str, Any] = {"laptop": SHIPPED["scales"]["laptop"], "huge": SHIPPED["scales"]["full"]}


def test_a_misspelt_key_is_named_as_it_was_written(tmp_path: Path) -> None:
    """`taau` is unknown and `tau` is missing: the first says where to look."""
    path = tmp_path / "params.yaml"
    misspelt = {"taau" if name == "tau" else name: value for name, value in SHIPPED.items()}
    path.write_text(yaml.safe_dump(misspelt), encoding="utf-8")
    with pytest.raises(QuorumError, match=r"taau: unknown key; did you mean tau\?; correct it"):
        read_params(path)


TUNE: dict[str, Any] = {"seed": 9, "families": {}, "trials": {}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tua": 4}, "tua: unknown key"),
        ({"faults": {"dropout": 0.2}}, "faults: some clients never answer; set tolerance.deadline, in seconds"),
        ({"faults": {"dropout": 1.5}}, "faults.dropout: "),
        ({"faults": {"poisoned": {"Nobody": "nan"}}}, "faults.poisoned: setting domains has no client 'Nobody'"),
        ({"faults": {"poisoned": {"Academic": "arsenic"}}}, "faults.poisoned.Academic: "),
        ({"tolerance": {"minimum": 4}}, "tolerance.minimum: 4, but a round has 3 clients; lower it"),
        ({"tau": -1}, "tau: is a number of nats, at least 0"),
        ({"tau": "high"}, "tau: is a number of nats"),
        ({"tau": True}, "tau: is a number of nats"),
        ({"tau": "q2"}, "tau: a quantile is q and a number between 0 and 1"),
        ({"tau": float("inf")}, "tau: is a number of nats"),
        ({"lambda": 1.5}, "lambda: Input should be less than or equal to 1"),
        ({"learning_rate": 0}, "learning_rate: Input should be greater than 0"),
        ({"batch_size": 0}, "batch_size"),
        ({"train_fraction": 1.5}, "train_fraction"),
        ({"span_end": "both"}, "span_end"),
        ({"task": "translate"}, "task: unknown task 'translate'; known: summarize"),
        ({"task": "classify"}, "task: classify is not a task on conversations"),
        ({"corpora": ["qmsum", "cnn"]}, "corpora: unknown corpus 'cnn'; known: qmsum, samsum"),
        ({"corpora": ["samsum", "ami", "icsi"]}, "corpora: must hold qmsum, and each corpus once"),
        ({"corpora": ["qmsum", "ami", "icsi"]}, "client SAMSum needs samsum; add it to corpora"),
        ({"backbone": "gpt"}, "unknown backbone 'gpt'; known: smollm2-135m"),
        ({"weights": "weights/bart"}, "weights: smollm2-135m does not come from the model hub"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "seeds must be distinct"),
        ({"folds": {2: "first"}}, "folds: 2: is none of the file's seeds"),
        ({"folds": {1: "third"}}, "folds.1: Input should be 'official', 'first' or 'second'"),
        (
            {"runs": {"x": {"method": "AdaFedAvg", "seeds": [5]}}},
            "runs.x.seeds: 5 is none of the file's seeds",
        ),
        ({"tune": TUNE | {"rates": [0.1]}}, "tune.rates: a grid needs two rates or more"),
        ({"tune": TUNE | {"rates": [0.1, 0.0]}}, "tune.rates"),
        ({"tune": TUNE | {"families": {"own": "single"}}}, "tune: rates and families go together"),
        ({"keep_rounds": [4711]}, "keep_rounds: 4711: is none of the file's seeds"),
        ({"seeds": [1, 1000]}, "tune.seed: 1000 is a seed that tables report"),
        ({"scale": "huge"}, "scale: "),
        ({"scales": HUGE}, "scales.huge"),
        ({"min_tokens": 200}, "min_tokens: 200 is above max_tokens: 128"),
        (
            {"min_tokens": 100, **settings(even=EVEN | {"max_tokens": 50})},
            "min_tokens: 100 is above settings.even.max_tokens: 50",
        ),
        (
            {"min_tokens": 100, **settings(even=on_laptop(EVEN, max_tokens=50))},
            "min_tokens: 100 is above settings.even.max_tokens: 50",
        ),
        ({"length_penalty": 2.0}, "length_penalty: only beam search has one"),
        ({"dropout": 0.1}, "dropout: unknown key"),
        ({"queries": {"samsum": "What?"}}, "queries.ami: is missing"),
        ({"queries": SHIPPED["queries"] | {"amy": "What?"}}, "queries: amy: is not a corpus without queries"),
        ({"own": {"Academic": {"folder": "data/own/x"}}}, "own.Academic: is taken"),
        ({"own": {"server": {"folder": "data/own/x"}}}, "own.server: is taken"),
        ({"own": {"Clinic": {"folder": "elsewhere"}}}, "own.Clinic.folder: elsewhere is not inside data/own"),
        (
            {"own": {"Clinic": {"folder": "data/own/../x"}}},
            "own.Clinic.folder: data/own/../x is not inside data/own",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(tmp_path: Path, changes: Any, message: str) -> None:
    assert message in line_of(tmp_path, changes)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"method": "FedMagic"}, "unknown method 'FedMagic'; known: ZeroShot, LeadTurns"),
        ({"method": "AdaFedAvg", "tua": 1}, "runs.x.tua: unknown key"),
        ({"method": "AdaFedSelectKD", "tau": -1}, "runs.x.tau: is a number of nats"),
        ({"method": "AdaFedAvg", "rounds": 0}, "runs.x.rounds: Input should be greater than or equal to 1"),
        ({"method": "AdaFedAvg", "setting": "moon"}, "runs.x.setting: no setting 'moon'"),
        ({"method": "AdaSingle", "tau": 3}, "runs.x.tau: unknown key"),
        ({"method": "ZeroShot", "rounds": 3}, "runs.x: ZeroShot trains nothing"),
        ({"method": "ZeroShot", "adapter": "lora"}, "runs.x: ZeroShot trains nothing"),
        ({"method": "AdaSingle", "dropout": 0.1}, "has no store; set decode: false"),
        ({"method": "AdaFedSelectKD", "kd_from_round": 9}, "runs.x: kd_from_round: 9, but of 8 rounds"),
        ({"method": "AdaFedAvg", "prolonged": True, "rounds": 2}, "rounds: a prolonged run has"),
        ({"method": "AdaFedAvg", "rounds_share": 0.5, "rounds": 2}, "rounds_share scales the scale's rounds"),
        ({"method": "AdaFedAvg", "setting": "extreme"}, "the main table is about QMSum, not SAMSum"),
        ({"method": "AdaFedAvg", "setting": "iid_balanced"}, "about summaries in a setting of kind domains"),
        ({"method": "AdaFedAvg", "decode": False}, "about summaries in a setting of kind domains"),
        ({"method": "AdaFedKD", "teacher": "own"}, "runs.x.teacher: its analyses are of the server's"),
        ({"method": "AdaFedKD", "select": "random"}, "runs.x.select: its analyses are of the entropy"),
    ],
)
def test_a_mistake_in_a_run_names_the_run(tmp_path: Path, row: Any, message: str) -> None:
    assert message in line_of(tmp_path, {"runs": {"x": row}})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"method": "AdaSingle", "adapter": "lora", "dropout": 0.1, "decode": False},
            "more_runs.x.dropout: lora has none",
        ),
        (
            {"method": "AdaFedKD", "prolonged": True, "late": DOMAINS["clients"]},
            "more_runs.x.late: leaves no client to begin with",
        ),
        ({"method": "AdaFedKD", "late": ["Product"]}, "late clients join with the added rounds"),
        (
            {"method": "AdaFedKD", "prolonged": True, "late": ["SAMSum"]},
            "more_runs.x.late: setting domains has no client 'SAMSum'",
        ),
        (
            {"method": "AdaFedSelectKD", "teacher": "others", "clients_per_round": 2},
            "more_runs.x: teacher: initial and others need every client",
        ),
    ],
)
def test_a_mistake_in_a_further_run_names_the_run(tmp_path: Path, row: Any, message: str) -> None:
    assert message in line_of(tmp_path, {"more_runs": SHIPPED["more_runs"] | {"x": row}})


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (DOMAINS | {"clients": ["Mars"]}, "settings.domains: unknown client 'Mars'"),
        (DOMAINS | {"clients": ["Product", "Product"]}, "settings.domains: clients: must name each once"),
        (DOMAINS | {"clients": []}, "is empty, and no own clients join them"),
        (DOMAINS | {"kind": "dealt"}, "settings.domains: Input tag 'dealt'"),
        (DOMAINS | {"kind": "balanced"}, "settings.domains.counts: is missing"),
        (DOMAINS | {"unit": "meeting"}, "settings.domains.unit: unknown key"),
        (DOMAINS | {"sizes": 3}, "settings.domains.sizes"),
        (DOMAINS | {"sizes": {"huge": {}}}, "settings.domains.sizes.huge: unknown scale; known: laptop, full, paper"),
        (on_laptop(DOMAINS, counts={"train": 1, "val": 1, "test": 1}), "settings.domains.counts: unknown key"),
        (on_laptop(DOMAINS, only={"SAMSum": {}}), "only.SAMSum: is no client of the setting"),
        (on_laptop(DOMAINS, train_fraction=2), "settings.domains.train_fraction: Input should be less than"),
    ],
)
def test_a_mistake_in_a_setting_names_the_setting(tmp_path: Path, setting: Any, message: str) -> None:
    """The main table's own is called as its kind is; a size stands where the scale lays it."""
    assert message in line_of(tmp_path, settings(domains=setting))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (on_laptop(EVEN, counts={"train": -1}) | {"counts": None}, "settings.even.counts.train: Input should be"),
        (EVEN | {"counts": {"train": 1, "val": 1}}, "settings.even.counts.test: is missing"),
        (EVEN | {"own": False}, "settings.even.own: unknown key"),
        (EVEN | {"only": {"Academic": {}}}, "settings.even.only: unknown key"),
        (EVEN | {"sizes": {"full": {"train_fraction": 0.5}}}, "settings.even.train_fraction: unknown key"),
        (IID | {"clients": ["First", "mean"]}, "settings.even: clients: 'mean' is taken"),
        (IID | {"clients": ["a.b"]}, "settings.even: clients: 'a.b' is taken, or no name"),
        (IID | {"of": []}, "settings.even.of: List should have at least 1 item"),
        (IID | {"of": ["Mars"]}, "settings.even: unknown client 'Mars'"),
    ],
)
def test_a_mistake_in_a_setting_of_another_kind_names_it(tmp_path: Path, setting: Any, message: str) -> None:
    """What one kind has, another has not."""
    assert message in line_of(tmp_path, settings(even=setting))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": {"a/b": {"method": "AdaSingle"}}}, "'a/b' is not a valid name"),
        ({"more_runs": {"single": {"method": "AdaSingle"}}}, "more_runs.single: is a name of runs, too"),
        (
            {
                "own": {"Clinic": {"folder": "data/own/Clinic"}},
                **settings(alone=DOMAINS | {"own": False}),
                "runs": {"x": {"method": "AdaFedAvg"}, "y": {"method": "AdaFedAvg", "setting": "alone"}},
            },
            "runs: the main table compares runs on the same clients",
        ),
        (
            {
                "own": {"Clinic": {"folder": "data/own/clinic"}},
                **settings(dealt=IID | {"clients": []}),
                "more_runs": {"x": {"method": "AdaFedAvg", "setting": "dealt"}},
            },
            "settings.dealt.clients: is empty, and no own clients join them",
        ),
        (
            {"tune": TUNE | {"trials": {"fedprox": [{"setting": "extreme"}]}}},
            "tune.trials: fedprox: setting is not a knob of a training",
        ),
        (
            {"tune": TUNE | {"trials": {"fedprox": [{"mu": 1}], "fedopt": []}}},
            "tune.trials: every run gets the same number of trials",
        ),
        ({"tune": TUNE | {"trials": {"fedprox": [{"mu": 1}]}}}, "tune.trials: fedprox: one trial chooses nothing"),
        (
            {"tune": TUNE | {"trials": {"fedprox": [{"mu": 1}, {"batch_size": 8}]}}},
            "tune.trials: fedprox: its trials name different knobs",
        ),
        (
            {
                "tune": TUNE | {"trials": {"later": [{"mu": 1}, {"mu": 2}]}},
                "more_runs": {"later": {"method": "AdaFedProx", "mu": 0.1, "seeds": [1]}},
            },
            "tune: later: has its own seeds, without tune.seed",
        ),
        (
            {"tune": TUNE | {"trials": {"fedavg-long": [{"learning_rate": 1}, {"learning_rate": 2}]}}},
            "tune: fedavg-long: setting 'long' is not of QMSum's domains alone",
        ),
        (
            settings(domains=on_laptop(DOMAINS, only={"Product": {"test_examples": 9}})),
            "runs.zeroshot.setting: the main table tests on whole test sets",
        ),
        ({"precision": "fp16"}, "precision: Input should be 'auto', 'fp32' or 'bf16'"),
        ({"backbone": "bart-base", "adapted_layers": 7}, "adapted_layers: 7, but bart-base has 6 decoder layers"),
    ],
)
def test_what_does_not_go_together_is_one_line(tmp_path: Path, changes: Any, message: str) -> None:
    assert message in line_of(tmp_path, changes)


def line_of(tmp_path: Path, changes: dict[str, Any]) -> str:
    """What is said of the shipped file with these changes."""
    with pytest.raises(QuorumError) as caught:
        resolve(read_params(params_with(tmp_path, **changes)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


ANOTHER: dict[str, Any] = yaml.safe_load(
    """
    {scale: full, seeds: [2, 3], device: cpu, precision: fp32, threads: 7,
     corpora: [qmsum, icsi, samsum, ami], data_source: sample, span_end: exclusive,
     train_fraction: 0.5, validation_examples: 3, backbone: tiny-llama, adapted_layers: 2,
     adapter: lora, bottleneck: 4, source_tokens: 100, target_tokens: 50, rounds: 2, added_rounds: 4,
     patience: 1, local_epochs: 2, batch_size: 4, learning_rate: 0.001, weight_decay: 0.0, clip_norm: 2.0,
     clients_per_round: 3, faults: {duplicated: 0.5}, tolerance: {minimum: 2},
     tau: q0.5, lambda: 0.4, local_start: own, folds: {1: first}, keep_rounds: [1],
     client_optimizer: sgd, client_schedule: linear,
     learning_rates: {own: 0.1, local: 0.2, server: 0.3, pooled: 0.4}, beams: 2, no_repeat_ngram: 0, min_tokens: 1,
     max_tokens: 99, use_stemmer: true, sign_flips: 100, topics: 5}
    """
)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The orders of the file as it is shipped, on a machine that multiplies bf16."""
    with pytest.MonkeyPatch.context() as machine:
        folder = tmp_path_factory.mktemp("shipped")
        a_processor_with("avx512_bf16", folder, machine)
        return told(folder, {})


@pytest.mark.parametrize("knob", sorted(ANOTHER))
def test_every_knob_can_be_set_by_itself(
    tmp_path: Path, shipped: dict[str, Any], knob: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the file's runs set for themselves; what cannot is in the test of mistakes."""
    a_processor_with("avx512_bf16", tmp_path, monkeypatch)
    assert SHIPPED[knob] != ANOTHER[knob]
    assert told(tmp_path, {knob: ANOTHER[knob]}) != shipped


def test_two_knobs_are_of_another_knobs_choice(tmp_path: Path) -> None:
    """A LoRA adapter's rank and a beam search's penalty."""
    assert told(tmp_path, {"adapter": "lora"}) != told(tmp_path, {"adapter": "lora", "lora_rank": 2})
    assert told(tmp_path, {"beams": 2}) != told(tmp_path, {"beams": 2, "length_penalty": 2.0})


def told(tmp_path: Path, changes: dict[str, Any]) -> dict[str, Any]:
    return resolve(read_params(params_with(tmp_path, **changes)))


def test_all_knobs_are_tried() -> None:
    tables = {"own", "queries", "scales", "settings", "runs", "more_runs", "studies", "tune"}
    assert set(SHIPPED) - set(ANOTHER) == tables | {"task", "weights", "lora_rank", "length_penalty"}


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    path = params_with(tmp_path)
    data = yaml.safe_load(path.read_text())
    del data["tau"]
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(QuorumError, match="tau: is missing"):
        read_params(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a: [", "not YAML"), (b"", "holds no keys"), (b"a: \xff", "not UTF-8"), (None, "is missing")],
)
def test_what_is_no_params_file_is_one_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "params.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuorumError, match=message) as caught:
        read_params(path)
    assert "\n" not in str(caught.value)


def read(tmp_path: Path, **changes: Any) -> Params:
    return read_params(params_with(tmp_path, **changes))


def test_a_scale_sets_sizes_and_a_single_knob_goes_over_it(tmp_path: Path) -> None:
    params = read(tmp_path, scale="full", rounds=7)
    assert params.source_tokens == SHIPPED["scales"]["full"]["source_tokens"]
    assert params.rounds == 7


def test_a_mistake_in_a_scale_that_is_not_chosen_is_found(tmp_path: Path) -> None:
    scales = SHIPPED["scales"] | {"paper": SHIPPED["scales"]["paper"] | {"rounds": 0}}
    with pytest.raises(QuorumError, match="at scale paper: rounds: Input should be greater than or equal to 1"):
        read(tmp_path, scale="laptop", scales=scales)


def test_a_settings_sizes_are_of_one_scale_and_what_it_sets_itself_goes_over_them(tmp_path: Path) -> None:
    """`own` names its share; `sized` has one on the laptop, of Product another one; elsewhere the scale's hold."""
    share = {"train_fraction": 0.3, "only": {"Product": {"train_fraction": 0.2}}}
    own, sized = DOMAINS | {"train_fraction": 0.9}, on_laptop(DOMAINS, **share)
    laptop, full = (
        read(tmp_path, scale=scale, **settings(own=on_laptop(own, train_fraction=0.3), sized=sized))
        for scale in ("laptop", "full")
    )
    assert [share_of(params, "own", "Product") for params in (laptop, full)] == [0.9, 0.9]
    assert [share_of(params, "sized", "Academic") for params in (laptop, full)] == [0.3, 1.0]
    assert [share_of(params, "sized", "Product") for params in (laptop, full)] == [0.2, 1.0]


def share_of(params: Params, name: str, client: str) -> float | None:
    setting = params.setting_of(name)
    assert isinstance(setting, Domains)
    return setting.share_of(client).train_fraction


def test_a_client_has_what_its_own_share_leaves_open_of_its_setting(tmp_path: Path) -> None:
    """Product's two validation examples stand beside the setting's half of the training examples; the scale has 40."""
    setting = DOMAINS | {"train_fraction": 0.5, "only": {"Product": {"validation_examples": 2}}}
    found = read(tmp_path, **settings(mine=setting)).setting_of("mine")
    assert isinstance(found, Domains)
    assert found.share_of("Product") == Share(train_fraction=0.5, validation_examples=2)
    assert found.share_of("Academic") == Share(train_fraction=0.5, validation_examples=40)


def test_a_settings_limits_go_over_the_scales(tmp_path: Path) -> None:
    """A target of 99 tokens on every scale, a source of 77 on the laptop."""
    mine = on_laptop(DOMAINS, source_tokens=77) | {"target_tokens": 99}
    laptop, full = (read(tmp_path, scale=scale, **settings(mine=mine)) for scale in ("laptop", "full"))
    assert laptop.limits_of("mine") == (77, 99)
    assert full.limits_of("mine") == (SHIPPED["scales"]["full"]["source_tokens"], 99)


def test_the_shipped_laptop_has_the_sizes_that_its_numbers_were_made_with() -> None:
    """A third of Academic's 218 training examples is five steps of 16; 80 training examples a client in Fig. 7, 2% of
    SAMSum in Fig. 8, all of ICSI and 960 target tokens in Fig. 9.
    """
    params = read_params(ROOT / "params.yaml")
    assert params.scale == "laptop"
    assert params.limits_of("domains") == (1024, 160)
    domains = params.setting_of("domains")
    assert isinstance(domains, Domains)
    assert domains.share_of("Academic") == Share(train_fraction=0.334, validation_examples=40)
    balanced, extreme, long = (params.setting_of(name) for name in ("noniid_balanced", "extreme", "long"))
    assert isinstance(balanced, Balanced)
    assert balanced.counts == Counts(train=80, val=40, test=40)
    assert isinstance(extreme, Domains)
    assert extreme.share_of("SAMSum") == Share(train_fraction=0.02, validation_examples=40, test_examples=100)
    assert extreme.share_of("Product") == Share(train_fraction=0.334, validation_examples=40)
    assert extreme.weights == {"SAMSum": pytest.approx(16.7)}
    assert isinstance(long, Domains)
    assert long.share_of("ICSI") == Share(train_fraction=1.0, validation_examples=40)
    assert (params.limits_of("long"), params.settings["long"].max_tokens) == ((1024, 960), 512)


def test_the_shipped_full_scale_has_the_papers_numbers_of_examples(tmp_path: Path) -> None:
    """200 training, 40 validation and 40 test examples a client in Fig. 7, and all of every other setting."""
    params = read(tmp_path, scale="full")
    balanced, extreme = params.setting_of("noniid_balanced"), params.setting_of("extreme")
    assert isinstance(balanced, Balanced)
    assert balanced.counts == Counts(train=200, val=40, test=40)
    assert isinstance(extreme, Domains)
    assert extreme.share_of("SAMSum") == Share(train_fraction=1.0)
    assert extreme.weights == {}
    assert params.limits_of("long") == (2048, 960)


def test_ones_own_clients_join_the_settings_that_take_them(tmp_path: Path) -> None:
    own = {"Clinic": {"folder": "data/own/clinic"}, "Bank": {"folder": "data/own/bank"}}
    params = read(tmp_path, own=own)
    assert params.setting_of("domains").clients == [*DOMAINS["clients"], "Bank", "Clinic"]
    assert params.setting_of("long").clients == SHIPPED["settings"]["long"]["clients"]


def test_a_runs_own_knob_goes_over_the_common_one(tmp_path: Path) -> None:
    runs = {"a": {"method": "AdaFedSelectKD", "tau": 3, "lambda": 0.5}, "b": {"method": "AdaFedSelectKD"}}
    params = read(tmp_path, runs=runs)
    found = [params.hyperparameters_of(name, fedselectkd.Hyperparameters) for name in ("a", "b")]
    assert [getattr(h, "tau", None) for h in found] == [Threshold(3.0), Threshold(SHIPPED["tau"])]
    assert [getattr(h, "weight", None) for h in found] == [0.5, SHIPPED["lambda"]]


def test_a_quantile_is_a_threshold(tmp_path: Path) -> None:
    params = read(tmp_path, tau="q0.88")
    assert params.tau == Threshold(quantile=0.88)
    hyper = params.hyperparameters_of("fedselectkd", fedselectkd.Hyperparameters)
    assert hyper.model_dump(mode="json", by_alias=True)["tau"] == "q0.88"


def test_a_runs_null_knob_is_no_knob(tmp_path: Path) -> None:
    runs = {"a": {"method": "AdaFedAvg", "rounds": None, "learning_rate": None}}
    params, laptop = read(tmp_path, runs=runs), SHIPPED["scales"]["laptop"]
    assert params.training_of("a").rounds == laptop["rounds"]
    training = training_order(params, "a", 1).training
    assert training is not None
    assert training.learning_rate == laptop["learning_rates"]["server"]


def test_a_rate_of_the_run_goes_over_the_files_and_the_files_over_the_familys(tmp_path: Path) -> None:
    runs = {"a": {"method": "AdaFedAvg", "learning_rate": 0.5}, "b": {"method": "AdaFedAvg"}}
    params = read(tmp_path, runs=runs, learning_rate=0.25)
    found = [training_order(params, name, 1).training for name in runs]
    assert [one.learning_rate for one in found if one] == [0.5, 0.25]


def test_a_run_of_some_seeds_is_left_out_at_the_others(tmp_path: Path) -> None:
    more = {"x": {"method": "AdaSingle", "seeds": [2]}}
    orders = resolve(read(tmp_path, seeds=[2, 3], more_runs=more, studies={}))
    assert orders["encode/more.json"]["left_out"] == ["more/x-3"]
    assert orders["encode/main.json"]["left_out"] == []


def test_a_share_of_the_rounds_is_rounded(tmp_path: Path) -> None:
    """Two thirds of three rounds are two, a tenth of them is one."""
    runs = {f"r{share}": {"method": "AdaFedAvg", "rounds_share": share} for share in (0.6667, 0.1)}
    params = read(tmp_path, runs=runs, rounds=3)
    assert [params.training_of(name).rounds for name in runs] == [2, 1]


def test_late_clients_come_in_with_the_first_added_round(tmp_path: Path) -> None:
    """Three rounds and two more: the fourth."""
    late = {"method": "AdaFedAvg", "prolonged": True, "late": ["Product"]}
    params = read(tmp_path, rounds=3, added_rounds=2, more_runs=SHIPPED["more_runs"] | {"x": late})
    assert params.joins_of("x") == {"Product": 4}


def test_a_file_over_another_has_its_knobs_and_settings(tmp_path: Path) -> None:
    """An experiment's file: one knob, one setting and the runs are its own, the rest is the other's."""
    params_with(tmp_path)
    folder = tmp_path / "experiments" / "mine"
    folder.mkdir(parents=True)
    own = {"runs": {}, "more_runs": {"x": {"method": "AdaSingle", "setting": "even"}}, "studies": {"x": ["x"]}}
    own |= {"extends": "../../params.yaml", "tau": 3.0, "settings": {"even": EVEN}, "tune": TUNE | {"trials": {}}}
    (folder / "params.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    params = read_params(folder / "params.yaml")
    assert (params.tau, params.batch_size) == (Threshold(3.0), SHIPPED["batch_size"])
    assert set(params.settings) == {*SHIPPED["settings"], "even"}
    assert set(params.all_runs) == {"x"}


def test_a_file_over_one_that_is_missing_is_one_line(tmp_path: Path) -> None:
    path = params_with(tmp_path, extends="gone.yaml")
    with pytest.raises(QuorumError, match=r"gone\.yaml: is missing"):
        read_params(path)
