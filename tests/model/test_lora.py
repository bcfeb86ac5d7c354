"""LoRA behind the adapters' interface: exact from the store, trained and decoded with, in every family."""

from __future__ import annotations

import pytest
import torch
from conftest import FAMILIES, make_backbone, render_all
from federations import FEDAVG, Make, locals_of, server_of, train

from pipeline.federated.algorithm import weighted_average
from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.model.backbone import Backbone, Row, targets_of
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.generation import generate
from pipeline.model.lora import init_lora, is_lora, lora

RULE = DecodingRule(beams=1, length_penalty=1.0, no_repeat_ngram=0, min_tokens=0, max_tokens=6)


def noisy(backbone: Backbone, seed: int = 0) -> Adapter:
    generator = torch.Generator().manual_seed(seed)
    fresh = init_lora(backbone.lora_shapes(), rank=4, seed=seed)
    return {name: t + 0.3 * torch.randn(t.shape, generator=generator) for name, t in fresh.items()}


def test_queries_and_values_above_the_first_adapted_layer_are_changed() -> None:
    """Four layers, two adapted: the store ends with layer 2, so LoRA is in layer 3 alone."""
    assert sorted(make_backbone("llama").lora_shapes()) == ["layers.3.self_attn.q_proj", "layers.3.self_attn.v_proj"]
    bart = make_backbone("bart")
    assert {name.split(".", 2)[2] for name in bart.lora_shapes()} == {
        f"{part}.{projection}" for part in ("self_attn", "encoder_attn") for projection in ("q_proj", "v_proj")
    }


def test_a_fresh_adapter_changes_nothing(backbone: Backbone) -> None:
    prefixes = [backbone.encode(r, for_generation=False)[0] for r in render_all(backbone)]
    fresh = init_lora(backbone.lora_shapes(), rank=4, seed=0)
    assert is_lora(fresh)
    assert torch.equal(backbone.target_hidden(prefixes, fresh), backbone.target_hidden(prefixes, {}))


def test_the_change_is_twice_b_a_x() -> None:
    """One projection by hand: W x + 2 B A x."""
    layer = torch.nn.Module()
    layer.q_proj = torch.nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.q_proj.weight.copy_(torch.eye(2))
    adapter = {
        "layers.0.q_proj.lora_A": torch.tensor([[1.0, 1.0]]),
        "layers.0.q_proj.lora_B": torch.tensor([[1.0], [0.0]]),
    }
    with lora([layer], adapter):
        assert layer.q_proj(torch.tensor([[3.0, 4.0]])).tolist() == [[3 + 2 * 7, 4]]
    assert layer.q_proj(torch.tensor([[3.0, 4.0]])).tolist() == [[3, 4]]


def test_cached_and_uncached_losses_and_gradients_agree(backbone: Backbone) -> None:
    rendered = render_all(backbone)
    prefixes = [backbone.encode(r, for_generation=False)[0] for r in rendered]
    losses, gradients = [], []
    for cached in (True, False):
        adapter = {name: t.clone().requires_grad_() for name, t in noisy(backbone).items()}
        hidden = backbone.target_hidden(prefixes, adapter) if cached else backbone.reference_hidden(rendered, adapter)
        loss = cross_entropy(backbone.head(hidden), targets_of(prefixes))
        loss.mean().backward()
        losses.append(loss.detach())
        gradients.append({name: t.grad for name, t in adapter.items()})
    torch.testing.assert_close(*losses, atol=1e-5, rtol=1e-5)
    bare = cross_entropy(backbone.head(backbone.target_hidden(prefixes, {})), targets_of(prefixes))
    assert not torch.allclose(losses[0], bare, atol=1e-4), "else the agreement would say nothing"
    for name, gradient in gradients[0].items():
        assert gradient is not None
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-5, rtol=1e-4)


def test_greedy_decoding_writes_what_the_uncached_model_would(backbone: Backbone) -> None:
    """Two adapters in one call, token by token against a full pass."""
    rendered = render_all(backbone, 1)
    stored = backbone.encode(rendered[0], for_generation=True)
    adapters = [noisy(backbone, 1), noisy(backbone, 2)]
    written = generate(backbone, [stored[0] | stored[1]], [Row(0, a) for a in adapters], RULE)
    for adapter, tokens in zip(adapters, written, strict=True):
        for length, token in enumerate(tokens):
            if (length == 0 and backbone.start_token_forced is not None) or length == RULE.max_tokens - 1:
                continue  # the model's own generation puts a token there
            target = (*tokens[:length], 0)
            item = type(rendered[0])(rendered[0].source, target, 0, 0)
            with torch.no_grad():
                logits = backbone.head(backbone.reference_hidden([item], adapter))[length]
            assert int(logits.argmax()) == token


@pytest.mark.parametrize("kind", ["lora", "bottleneck"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_federation_trains_either_adapter(family: str, kind: str, make_client: Make) -> None:
    backbone = make_backbone(family)
    clients = {"A": make_client(backbone, 0, 4), "B": make_client(backbone, 9, 4)}
    initial = (
        init_lora(backbone.lora_shapes(), rank=4, seed=0)
        if kind == "lora"
        else init_adapter(backbone.adapted_layers, backbone.width, 8, seed=0)
    )
    run = train(FEDAVG, clients, initial=initial, seed=1)
    server = server_of(run)
    assert all(not torch.equal(server[name], initial[name]) for name in initial)
    mean = weighted_average((adapter, 3) for adapter in locals_of(run).values())
    assert all(torch.equal(server[name], mean[name]) for name in initial)
    first, last = (row.train_loss for row in run.progress.history if row.client == "B")
    assert first is not None
    assert last is not None
    assert last < first
