"""The benchmarks' two sides agree, and their formulas count what real models have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration, LlamaConfig, LlamaForCausalLM

from benchmarks import federated_run, scale, training_step
from benchmarks.backbones import Model
from benchmarks.comparison import OURS, THEIRS, interleaved
from benchmarks.loop_overhead import ours as loop_seconds
from pipeline.model.backbone import Backbone
from pipeline.model.causal import CausalBackbone
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.tiny import tiny_model, tiny_tokenizer


def shape_of(family: str, dtype: torch.dtype = torch.float32) -> training_step.Shape:
    def plain() -> Any:
        return tiny_model(family).eval().requires_grad_(False).to(dtype)

    def backbone() -> Backbone:
        kind = CausalBackbone if family == "llama" else Seq2SeqBackbone
        return kind(f"tiny-{family}", plain(), tiny_tokenizer(), 2)

    return training_step.Shape(lambda: Model(backbone, plain), 24, 8, faster=1.0, dtype=dtype)


@pytest.mark.parametrize("family", ["llama", "bart"])
def test_a_step_from_the_store_is_the_step_written_plainly(family: str) -> None:
    results = {side: step() for side, step in training_step.sides_of(shape_of(family)).items()}
    assert results[OURS][0] == pytest.approx(results[THEIRS][0], abs=1e-5)
    assert training_step.disagreement({side: result[1] for side, result in results.items()}) < 1e-3


def test_the_gpus_number_format_runs_here_too() -> None:
    """bf16 has 8 bits: 1 in 256, over a loss of five to six nats."""
    results = {side: step() for side, step in training_step.sides_of(shape_of("bart", torch.bfloat16)).items()}
    assert results[OURS][0] == pytest.approx(results[THEIRS][0], abs=0.05)


def test_without_a_gpu_its_row_says_so() -> None:
    if torch.cuda.is_available():
        pytest.skip("left out: there is a GPU")
    assert [row.skipped for row in training_step.measure(training_step.GPU, 1)] == ["no GPU here"]


def test_sides_are_timed_in_turn() -> None:
    calls: list[str] = []
    sides: dict[str, Callable[[], None]] = {name: lambda name=name: calls.append(name) for name in "ab"}  # type: ignore[misc]
    seconds, _ = interleaved(sides, 2)
    assert calls == ["a", "b"] * 3
    assert seconds["a"].runs == 2


def test_the_loop_runs_with_nothing_to_train() -> None:
    assert 0 < loop_seconds(5) < 1


def test_clients_of_the_federated_run_differ() -> None:
    first, second = (federated_run.examples_of(client) for client in federated_run.CLIENTS[:2])
    assert first != second
    assert first == federated_run.examples_of(federated_run.CLIENTS[0])


def test_shapes_have_the_parameters_of_real_models() -> None:
    """Within 2%: norms, biases and positions are left out."""
    llama = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        models = {"SmolLM2-135M": LlamaForCausalLM(llama), "BART-large": BartForConditionalGeneration(BartConfig())}
    for name, model in models.items():
        assert scale.SHAPES[name].parameters == pytest.approx(model.num_parameters(), rel=0.02)


def test_a_table_of_scale_by_hand() -> None:
    """A causal layer of width 2, inner width 4, keys 1, three matrices: 2·2·2 + 2·2·1 + 3·2·4 = 36 weights; 5 words."""
    shape = scale.Shape(0, 1, 2, 4, 1, 5, adapted=1, bottleneck=3, longest=8, matrices=3)
    assert shape.parameters == 36 + 5 * 2
    assert shape.adapter_parameters == 2 * 2 * 3 + 2 * 2
    assert scale.store_bytes(shape, 7) == 4 * scale.TARGET * 2
    assert scale.size(1500) == "1.5 k"
    assert scale.duration(90) == "1.5 min"
