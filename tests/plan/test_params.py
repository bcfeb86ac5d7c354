"""params.yaml: every mistake is one line that names the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from shipped import DOMAINS, IID, SHIPPED, params_with

from pipeline.errors import QuorumError
from pipeline.federated.algorithms import fedselectkd
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import read_params

BRIEF: dict[str, Any] = SHIPPED["settings"]["long"] | {"sizes": {"laptop": {"max_tokens": 50}}}


def test_a_misspelt_key_is_named_as_it_was_written(tmp_path: Path) -> None:
    """`taau` is unknown and `tau` is missing: the first says where to look."""
    path = tmp_path / "params.yaml"
    misspelt = {"taau" if name == "tau" else name: value for name, value in SHIPPED.items()}
    path.write_text(yaml.safe_dump(misspelt), encoding="utf-8")
    with pytest.raises(QuorumError, match="taau: unknown key"):
        read_params(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tua": 4}, "tua: unknown key"),
        ({"tau": -1}, "tau: is a number of nats, at least 0"),
        ({"tau": "high"}, "tau: is a number of nats"),
        ({"tau": "q2"}, "tau: a quantile is q and a number between 0 and 1"),
        ({"lambda": 1.5}, "lambda: Input should be less than or equal to 1"),
        ({"learning_rate": 0}, "learning_rate: Input should be greater than 0"),
        ({"batch_size": 0}, "batch_size"),
        ({"train_fraction": 1.5}, "train_fraction"),
        ({"span_end": "both"}, "span_end"),
        ({"backbone": "gpt"}, "unknown backbone 'gpt'; known: smollm2-135m"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "seeds must be distinct"),
        ({"min_tokens": 200}, "min_tokens: 200 is above max_tokens"),
        ({"scale": "huge"}, "scale"),
        ({"runs": {"x": {"method": "FedMagic"}}}, "unknown method 'FedMagic'; known: ZeroShot, AdaSingle"),
        ({"runs": {"x": {"method": "AdaFedAvg", "tua": 1}}}, "runs.x.tua: unknown key"),
        ({"runs": {"x": {"method": "AdaFedSelectKD", "tau": -1}}}, "runs.x.tau: is a number of nats"),
        ({"runs": {"x": {"method": "AdaFedAvg", "setting": "moon"}}}, "runs.x.setting: no setting 'moon'"),
        ({"runs": {"x": {"method": "AdaSingle", "evaluate": "server"}}}, "AdaSingle has no server"),
        (
            {"runs": {"x": {"method": "AdaFedSelectKD", "teacher": "others"}}, "clients_per_round": 2},
            "runs.x: teacher: initial and others need every client",
        ),
        ({"runs": {"a/b": {"method": "AdaSingle"}}}, "'a/b' is no name"),
        ({"settings": {"domains": {"kind": "domains", "clients": ["Mars"]}}}, "unknown client 'Mars'"),
        ({"runs": {"x": {"method": "AdaSingle", "tau": 3}}}, "runs.x.tau: unknown key"),
        ({"runs": {"x": {"method": "ZeroShot", "rounds": 3}}}, "runs.x: ZeroShot trains nothing"),
        ({"runs": {"x": {"method": "ZeroShot", "adapter": "lora"}}}, "runs.x: ZeroShot trains nothing"),
        ({"dropout": 0.1}, "dropout: unknown key"),
        ({"runs": {"x": {"method": "AdaSingle", "dropout": 0.1}}}, "has no store; set decode: false"),
        (
            {"more_runs": {"x": {"method": "AdaSingle", "adapter": "lora", "dropout": 0.1, "decode": False}}},
            "more_runs.x.dropout: lora has none",
        ),
        (
            {"more_runs": {"x": {"method": "AdaFedKD", "prolonged": True, "late": DOMAINS["clients"]}}},
            "more_runs.x.late: leaves no client to begin with",
        ),
        (
            {"runs": {"x": {"method": "AdaFedSelectKD", "kd_from_round": 9}}},
            "runs.x: kd_from_round: 9, but of 3 rounds",
        ),
        ({"length_penalty": 2.0}, "length_penalty: is of beam search"),
        ({"queries": {"samsum": "What?"}}, "queries.ami: is missing"),
        ({"queries": SHIPPED["queries"] | {"amy": "What?"}}, "queries: amy: is no corpus without queries"),
        ({"runs": {"x": {"method": "AdaFedAvg", "setting": "extreme"}}}, "the main table is about QMSum, not SAMSum"),
        ({"runs": {"x": {"method": "AdaFedKD", "teacher": "own"}}}, "runs.x.teacher: its analyses are of the server's"),
        ({"runs": {"x": {"method": "AdaFedKD", "select": "random"}}}, "runs.x.select: its analyses are of the entropy"),
        (
            {
                "settings": SHIPPED["settings"]
                | {"domains": DOMAINS | {"sizes": {"laptop": {"only": {"Product": {"test_examples": 9}}}}}}
            },
            "the main table tests on whole test sets",
        ),
        (
            {
                "own": {"Clinic": {"folder": "data/own/Clinic"}},
                "settings": SHIPPED["settings"] | {"alone": DOMAINS | {"own": False}},
                "runs": {"x": {"method": "AdaFedAvg"}, "y": {"method": "AdaFedAvg", "setting": "alone"}},
            },
            "runs: the main table compares runs on the same clients",
        ),
        ({"settings": {"domains": DOMAINS | {"clients": ["Product", "Product"]}}}, "clients: must name each once"),
        (
            {"settings": SHIPPED["settings"] | {"iid_balanced": IID | {"clients": ["First", "mean"]}}},
            "settings.iid_balanced: clients: 'mean' is taken",
        ),
        ({"min_tokens": 100, "settings": SHIPPED["settings"] | {"long": BRIEF}}, "above settings.long.sizes.laptop"),
        ({"scales": SHIPPED["scales"] | {"huge": SHIPPED["scales"]["full"]}}, "scales.huge"),
        (
            {"search": {"seed": 9, "trials": {"fedprox": [{"setting": "extreme"}]}}},
            "search.trials: fedprox: setting is no knob of a training",
        ),
        (
            {"runs": {"x": {"method": "AdaFedAvg", "prolonged": True, "rounds": 2}}},
            "runs.x.rounds: of a prolonged run is the scale's",
        ),
        ({"tau": float("inf")}, "tau: is a number of nats"),
        ({"own": {"Academic": {"folder": "data/own/x"}}}, "own.Academic: is taken"),
        ({"own": {"server": {"folder": "data/own/x"}}}, "own.server: is taken"),
        ({"own": {"Clinic": {"folder": "elsewhere"}}}, "own.Clinic.folder: elsewhere is not inside data/own"),
        ({"settings": {"domains": {"kind": "domains", "clients": []}}}, "is empty, and no own clients join them"),
        (
            {
                "settings": {"domains": DOMAINS, "iid_balanced": IID | {"clients": []}},
                "more_runs": {"x": {"method": "AdaFedAvg", "setting": "iid_balanced"}},
                "studies": {},
                "search": {"seed": 9, "trials": {}},
                "own": {"Clinic": {"folder": "data/own/clinic"}},
            },
            "settings.iid_balanced.clients: is empty, and no own clients join them",
        ),
        (
            {"settings": {"domains": DOMAINS | {"sizes": {"laptop": {"counts": {"train": -1, "val": 1, "test": 1}}}}}},
            "settings.domains.sizes.laptop.counts.train: Input should be greater than or equal to 1",
        ),
        ({"settings": {"domains": DOMAINS | {"sizes": {"huge": {}}}}}, "settings.domains.sizes.huge"),
        (
            {"settings": {"domains": DOMAINS | {"sizes": {"laptop": {"only": {"SAMSum": {}}}}}}},
            "sizes.laptop.only.SAMSum: is no client of the setting",
        ),
        (
            {"settings": {"domains": DOMAINS | {"kind": "balanced", "sizes": {"laptop": {"only": {"Academic": {}}}}}}},
            "sizes.laptop.only: is of kind: domains alone",
        ),
        (
            {"settings": {"domains": DOMAINS | {"kind": "balanced"}}},
            "settings.domains.sizes.laptop.counts: kind: balanced needs them",
        ),
        (
            {"settings": {"domains": DOMAINS | {"sizes": {"laptop": {"counts": {"train": 1, "val": 1, "test": 1}}}}}},
            "settings.domains.sizes.laptop.counts",
        ),
        ({"settings": {"domains": DOMAINS | {"unit": "meeting"}}}, "unit is what kind: iid deals out"),
        ({"settings": {"domains": DOMAINS | {"kind": "balanced", "own": False}}}, "own is of kind: domains alone"),
        (
            {"settings": {"domains": DOMAINS | {"kind": "balanced", "sizes": {"full": {"train_fraction": 0.5}}}}},
            "sizes.full: kind: balanced takes its numbers of examples from counts alone",
        ),
        (
            {"runs": {"x": {"method": "AdaFedAvg", "rounds_share": 0.5, "rounds": 2}}},
            "rounds_share is of the scale's rounds",
        ),
        ({"backbone": "bart-base", "adapted_layers": 7}, "adapted_layers: 7, but bart-base has 6 decoder layers"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(tmp_path: Path, changes: Any, message: str) -> None:
    with pytest.raises(QuorumError) as caught:
        resolve(read_params(params_with(tmp_path, **changes)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


ANOTHER: dict[str, Any] = yaml.safe_load(
    """
    {scale: full, seeds: [2, 3], device: cpu, corpora: [qmsum, icsi, samsum, ami], data_source: sample,
     span_end: exclusive, train_fraction: 0.5, validation_examples: 3, backbone: tiny-llama, adapted_layers: 2,
     adapter: lora, bottleneck: 4, lora_rank: 2, source_tokens: 100, target_tokens: 50, rounds: 2, added_rounds: 3,
     patience: 1, local_epochs: 2, batch_size: 4, learning_rate: 0.001, weight_decay: 0.0, clip_norm: 2.0,
     clients_per_round: 3, tau: q0.5, lambda: 0.4, local_start: server, beams: 2, no_repeat_ngram: 0, min_tokens: 1,
     max_tokens: 99, use_stemmer: true, bootstrap_samples: 100, topics: 5, permutation_samples: 100}
    """
)


@pytest.mark.parametrize("knob", sorted(ANOTHER))
def test_every_knob_can_be_set_by_itself(tmp_path: Path, knob: str) -> None:
    """As the file is shipped, whatever its runs set for themselves; what cannot is in the test of mistakes."""
    assert SHIPPED[knob] != ANOTHER[knob]
    before, after = (resolve(read_params(params_with(tmp_path, **c))) for c in ({}, {knob: ANOTHER[knob]}))
    assert before != after


def test_all_knobs_are_tried() -> None:
    tables = {"own", "queries", "scales", "settings", "runs", "more_runs", "studies", "search"}
    assert set(SHIPPED) - set(ANOTHER) == tables | {"weights", "length_penalty"}


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    path = params_with(tmp_path)
    data = yaml.safe_load(path.read_text())
    del data["tau"]
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(QuorumError, match="tau: is missing"):
        read_params(path)


@pytest.mark.parametrize(("content", "message"), [("a: [", "not YAML"), ("", "holds no keys")])
def test_what_is_no_params_file_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(content)
    with pytest.raises(QuorumError, match=message):
        read_params(path)


def test_a_scale_sets_sizes_and_a_single_knob_goes_over_it(tmp_path: Path) -> None:
    params = read_params(params_with(tmp_path, scale="full", rounds=7))
    assert params.sizes().source_tokens == SHIPPED["scales"]["full"]["source_tokens"]
    assert params.sizes().rounds == 7


def test_a_runs_own_knob_goes_over_the_common_one(tmp_path: Path) -> None:
    runs = {"a": {"method": "AdaFedSelectKD", "tau": 3, "lambda": 0.5}, "b": {"method": "AdaFedSelectKD"}}
    params = read_params(params_with(tmp_path, runs=runs))
    hyper = [params.hyperparameters_of(name, fedselectkd.Hyperparameters).model_dump() for name in ("a", "b")]
    assert [(h["tau"], h["weight"]) for h in hyper] == [(3, 0.5), (SHIPPED["tau"], SHIPPED["lambda"])]


def test_a_runs_null_knob_is_no_knob(tmp_path: Path) -> None:
    runs = {"a": {"method": "AdaFedAvg", "rounds": None, "learning_rate": None}}
    training = read_params(params_with(tmp_path, runs=runs)).training_of("a")
    laptop = SHIPPED["scales"]["laptop"]
    assert (training.rounds, training.learning_rate) == (laptop["rounds"], laptop["learning_rate"])
