"""LoRA behind the adapters' interface, in every family."""

from __future__ import annotations

import pytest
import torch
from conftest import FAMILIES, make_backbone, prefixes_of
from federations import FEDAVG, Make, locals_of, server_of, train

from pipeline.federated.algorithm import weighted_average
from pipeline.model.adapter import init_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.lora import init_lora, is_lora, lora


def test_queries_and_values_above_the_first_adapted_layer_are_changed() -> None:
    """Four layers, two adapted: the store ends with layer 2, so LoRA is in layer 3 alone."""
    assert sorted(make_backbone("llama").lora_shapes()) == ["layers.3.self_attn.q_proj", "layers.3.self_attn.v_proj"]
    bart = make_backbone("bart")
    assert {name.split(".", 2)[2] for name in bart.lora_shapes()} == {
        f"{part}.{projection}" for part in ("self_attn", "encoder_attn") for projection in ("q_proj", "v_proj")
    }


def test_a_fresh_adapter_changes_nothing(backbone: Backbone) -> None:
    prefixes = prefixes_of(backbone)
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
