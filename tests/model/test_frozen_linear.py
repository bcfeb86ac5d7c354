"""Packed linear layers: the same numbers as the plain ones, forward and backward."""

import pytest
import torch
from torch import nn

from pipeline.model.frozen_linear import PackedLinear, freeze_linear_layers

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="left out: torch without oneDNN")


def test_product_and_gradient_by_hand() -> None:
    """x = (1, -1): x Wᵀ = (-1, -1, -1), with the bias (-0.5, -1, -1.5); ∂(y₁ + 2 y₃)/∂x = (1 + 2·5, 2 + 2·6)."""
    layer = nn.Linear(2, 3).requires_grad_(False)
    layer.weight.data, layer.bias.data = torch.arange(1.0, 7).view(3, 2), torch.tensor([0.5, 0.0, -0.5])
    inputs = torch.tensor([[1.0, -1.0]], requires_grad=True)
    outputs = PackedLinear(layer)(inputs)
    (outputs @ torch.tensor([1.0, 0.0, 2.0])).backward()
    assert (outputs.tolist(), inputs.grad.tolist()) == ([[-0.5, -1.0, -1.5]], [[11.0, 14.0]])


def test_equals_the_plain_layer_in_any_shape() -> None:
    torch.manual_seed(0)
    plain = nn.Linear(48, 80, bias=False).requires_grad_(False)
    packed = PackedLinear(plain)
    shaped = [torch.randn(shape) for shape in ((1, 48), (7, 48), (2, 3, 48), (0, 48))]
    for inputs in (*shaped, torch.randn(5, 2, 48).transpose(0, 1)):
        torch.testing.assert_close(packed(inputs), plain(inputs), atol=1e-5, rtol=1e-5)


def test_replaces_the_linear_layers_in_fp32_and_nothing_else() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2), nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2).double())
    freeze_linear_layers(model.requires_grad_(False), "fp32")
    types = [type(layer) for layer in (model[0], model[1], model[2][0], model[3])]  # type: ignore[index]
    assert types == [PackedLinear, nn.LayerNorm, PackedLinear, nn.Linear]


def test_a_weight_is_stored_once_unless_an_embedding_shares_it() -> None:
    """The packed copy is the only one; a placeholder has its shape and type."""
    model = nn.Module()
    model.embed, model.head, model.inner = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False), nn.Linear(4, 5, bias=False)
    model.head.weight = model.embed.weight
    before = model.inner.weight.detach().clone()
    freeze_linear_layers(model.requires_grad_(False), "fp32")
    assert model.head.weight is model.embed.weight
    assert (model.inner.weight.shape, model.inner.weight.dtype) == (before.shape, before.dtype)
    assert model.inner.weight.untyped_storage().nbytes() == before.element_size()
    torch.testing.assert_close(model.inner(torch.eye(4)), before.t())


def test_no_weight_goes_on_mapping_the_file_that_it_was_read_from() -> None:
    """One tensor of a file keeps all of it in memory."""
    file = torch.arange(32.0)
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)).requires_grad_(False)
    model[0].weight.data, model[1].weight.data = file[:16].view(4, 4), file[16:20]
    freeze_linear_layers(model, "fp32")
    used = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}
    assert file.untyped_storage().data_ptr() not in used
    assert torch.equal(model[1].weight, file[16:20])
