"""The benchmarks' two sides agree, and their formulas count what real models have."""

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import ROOT, make_backbone, needs_bf16
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, BartConfig, LEDConfig, LlamaConfig, LongT5Config

from benchmarks import encoder_step, federated_run, federations, scale, shapes, table, training_step
from benchmarks.__main__ import COMPARISONS
from benchmarks.backbones import Model
from benchmarks.comparison import OURS, THEIRS
from benchmarks.training_step import Side
from pipeline.federated.algorithm import WeightedMean
from pipeline.model.adapter import read_adapter
from pipeline.model.encoder import Encoder
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.precision import Precision
from pipeline.model.tiny import tiny_encoder, tiny_model, tiny_wordpieces

Json = dict[str, Any]


def model_of(family: str) -> Model:
    return Model(
        lambda precision: make_backbone(family, precision=precision),
        lambda dtype: tiny_model(family).eval().requires_grad_(False).to(dtype),
        lambda: tiny_model(family).config,
        adapted=2,
    )


BF16 = pytest.param("bf16", False, marks=needs_bf16)


@pytest.mark.parametrize(("precision", "compiled"), [("fp32", False), ("fp32", True), BF16])
@pytest.mark.parametrize("family", ["llama", "bart"])
def test_a_step_from_the_store_is_the_step_written_plainly(
    family: str, precision: Precision, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bf16 has 8 bits: 1 in 256, over a loss of five to six nats.

    Hooks that came after compilation would not be called: the loss would be the bare model's. The graph is what is
    tested. The backend runs it as it is: generating C++ for it takes most of a minute.
    """
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    # Random weights are sure of nothing: only a threshold above all entropies distils anything.
    case = training_step.Case(lambda: model_of(family), 24, 8, (), tau=20.0)
    sides = Side(OURS, precision), Side(THEIRS, precision, compiled)
    steps = {side.who: training_step.step_of(case, side) for side in sides}
    for _step in range(1 + compiled):
        results = {side: step() for side, step in steps.items()}
    assert results[OURS][0] == pytest.approx(results[THEIRS][0], abs=1e-5 if precision == "fp32" else 0.05)
    if precision == "fp32":
        assert training_step.disagreement({side: result[1] for side, result in results.items()}) < 1e-3


def test_a_federated_run_is_the_one_written_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a tiny model, without Flower, whose part is the mean of the clients' adapters."""
    model, batch = model_of("llama"), training_step.batch
    replaced = {
        "embedded": lambda: model,
        "examples_of": lambda client: batch(5, 24, 6 + federated_run.CLIENTS.index(client), 250, 2),
        "SOURCE": 24,
        "PRECISION": "fp32",
        "_plain_model": functools.cache(lambda: model.plain(torch.float32)),
    }
    for name, value in replaced.items():
        monkeypatch.setattr(federated_run, name, value)
    federated_run.exact(tmp_path)
    adapter = federated_run.initial(model.layers(), model.config().hidden_size)
    for number in range(1, federated_run.ROUNDS + 1):
        trained = [federated_run.train_plainly(adapter, client, number) for client in federated_run.CLIENTS]
        adapter = WeightedMean((adapter, 1) for adapter in trained).value()
    _, relative = federated_run._apart(read_adapter(tmp_path / "server.safetensors"), adapter)
    assert relative < 1e-3


SMOL = {"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30}
SMOL |= {"num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True}
T5 = {"d_model": 768, "d_ff": 2048, "num_heads": 12, "num_layers": 12, "feed_forward_proj": "gated-gelu"}
SHAPES = [
    ("SmolLM2-135M", LlamaConfig(**SMOL)),
    ("BART-large", BartConfig()),
    ("LED-large", LEDConfig(d_model=1024, attention_window=1024, vocab_size=50265)),
    ("LongT5-base", LongT5Config(**T5)),
]


@pytest.mark.parametrize(("name", "config"), SHAPES)
def test_shapes_have_the_parameters_of_real_models(name: str, config: Any) -> None:
    """Within 2%: norms and biases are left out."""
    kind = AutoModelForCausalLM if isinstance(config, LlamaConfig) else AutoModelForSeq2SeqLM
    with torch.device("meta"):
        count = kind.from_config(config).num_parameters()
    assert shapes.SHAPES[name].parameters == pytest.approx(count, rel=0.02)


def test_a_table_of_scale_by_hand() -> None:
    """Two causal layers of width 2, inner width 4, keys 1, three matrices: 2·2·2 + 2·2·1 + 3·2·4 = 36 weights each.

    One layer above the first adapted one keeps 7 keys and 7 values of 1 number, each summary's 80 tokens 2 numbers.
    """
    shape = shapes.Shape(0, 2, 2, 4, 1, 5, adapted=2, bottleneck=3, longest=8, matrices=3)
    assert shape.parameters == 2 * 36 + 5 * 2
    assert shape.adapter_parameters == 2 * (2 * 2 * 3 + 2 * 2)
    assert shapes.store_bytes(shape, 7) == 2 * 2 * 7 + 4 * 80 * 2  # keys and values in bf16, states in fp32
    assert scale.size(1500) == "1.5 k"
    assert scale.duration(90) == "1.5 min"


CAUSAL = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4}
CAUSAL |= {"num_attention_heads": 4, "num_key_value_heads": 4}
BOTH = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in (("layers", 3), ("ffn_dim", 256))}
BOTH |= {"vocab_size": 500, "d_model": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4}


@pytest.mark.parametrize("family", ["causal", "encoder-decoder"])
def test_the_arithmetic_of_a_plain_forward_pass(family: str) -> None:
    """Half of a plain step, back pass apart, is what torch counts in one real pass; torch counts masked attention."""
    tokens, written = torch.ones(1, 200, dtype=torch.long), torch.ones(1, shapes.TARGET, dtype=torch.long)
    kind, config, masked = AutoModelForSeq2SeqLM, BartConfig(**BOTH), 0
    shape = shapes.Shape(3, 3, 64, 256, 64, 500, adapted=2, bottleneck=32, longest=512)
    given: Json = {"input_ids": tokens, "labels": written}
    if family == "causal":
        kind, config, masked = AutoModelForCausalLM, LlamaConfig(**CAUSAL), 2 * 64 * 4 * (200 + shapes.TARGET) ** 2
        shape = shapes.Shape(0, 4, 64, 128, 64, 500, adapted=2, bottleneck=32, longest=512, matrices=3)
        given = {"input_ids": torch.cat([tokens, written], 1), "logits_to_keep": shapes.TARGET}
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        kind.from_config(config, attn_implementation="eager").eval()(**given)
    back = (shape.adapted - 1) * shapes.decoder_flops(shape, 200) + 2 * shapes.TARGET * 64 * 500
    adapters = 4 * shape.adapted * shapes.TARGET * 4 * 64 * 32
    once = (shapes.plain_flops(shape, 200) - back - adapters) / 2
    assert once == pytest.approx(counter.get_total_flops() - masked, rel=0.01)


def test_the_table_is_the_one_that_was_measured() -> None:
    """As committed: who runs `make bench` has a table of their own, and pages of ours."""

    def committed(name: str) -> str:
        command = ["git", "show", f"HEAD:reports/benchmarks/{name}"]
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    results = json.loads(committed("results.json"))
    measured = table.markdown([row for name in COMPARISONS for row in results.get(name, ())])
    assert committed("table.md") == measured


def test_a_table_says_what_was_missed_and_what_was_not_measured() -> None:
    """2 s against 3 s is 1.5 times; 0.002 s are 2 ms."""
    side = {"median": 2.0, "low": 1.5, "high": 2.5, "runs": 3}
    short = {name: value / 1000 for name, value in side.items()}
    row = {"what": "a step", "against": "plain", "ratio": 1.5, "promised": 2.0, "ours": side, "unit": "s"}
    row |= {"measured": {"day": "1999-12-31"}, "skipped": None}
    missed = row | {"theirs": side | {"median": 3.0}}
    met = row | {"ours": short, "theirs": short | {"median": 0.003}, "promised": 1.0}
    assert table.markdown([missed, met, row | {"skipped": "no GPU here"}]).splitlines()[2:] == [
        "| a step | plain | 2.00 s (1.50 … 2.50) | 3.00 s (1.50 … 2.50) | 1.50 | 2 | **no** | 1999-12-31 |",
        "| a step | plain | 2.00 ms (1.50 … 2.50) | 3.00 ms (1.50 … 2.50) | 1.50 | 1 | yes | 1999-12-31 |",
        "| a step | plain |  |  |  | 2 | skipped: no GPU here |  |",
    ]


@pytest.mark.parametrize("cut", ["e,0", "e,0-2"])
def test_a_step_above_a_cut_is_the_same_with_and_without_a_store(cut: str, tmp_path: Path) -> None:
    made = Encoder("tiny-bert", tiny_encoder("bert"), tiny_wordpieces(), FrozenPart.parse(cut))
    found = {side: run() for side, run in encoder_step.steps_of(made, tmp_path).items()}
    torch.testing.assert_close(found[OURS], found[THEIRS], rtol=0, atol=1e-5)


def test_many_clients_are_measured_with_and_without_states() -> None:
    found = federations.measured(12)
    assert found["round_disk_mb"] > found["stateless_disk_mb"] > 0
    assert found["round_seconds"] > 0
