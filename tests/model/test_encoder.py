"""An encoder with a frozen part: what is stored, what trains above, and that both are the model."""

from typing import Any

import pytest
import torch

from pipeline.errors import QuorumError
from pipeline.model.backbone import Prefix, Rendered
from pipeline.model.encoder import Encoder
from pipeline.model.encoder_loading import attention_in_fp32
from pipeline.model.frozen_part import Above, FrozenPart
from pipeline.model.tiny import tiny_encoder, tiny_wordpieces

CUTS = ("none", "e", "e,0", "e,0-1", "e,0-2")
TEXTS = ("a bc def", "g", "hij klmn op qrst uv")


def encoder(cut: str, family: str = "bert", **other: Any) -> Encoder:
    return Encoder(f"tiny-{family}", tiny_encoder(family), tiny_wordpieces(), FrozenPart.parse(cut), **other)


def stored(made: Encoder) -> list[Prefix]:
    ids = [tuple(made.tokenizer(text)["input_ids"]) for text in TEXTS]
    return list(made.encode([Rendered(own, (0,), len(own), len(own)) for own in ids]))


def assert_as_plain(made: Encoder, family: str, above: Above, size: int, *, within: float) -> None:
    """Stored, padded to one length and run with initial tensors: as transformers gives each text alone."""
    hidden, mask = made.states(stored(made), made.initial(above, size, 1))
    model, tokenizer = tiny_encoder(family).eval(), tiny_wordpieces()
    for own, tokens, text in zip(hidden, mask, TEXTS, strict=True):
        expected = model(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0]
        torch.testing.assert_close(own[tokens], expected, rtol=0, atol=within)


@pytest.mark.parametrize("family", ["bert", "distilbert"])
@pytest.mark.parametrize("cut", CUTS)
def test_the_frozen_part_and_the_rest_are_the_model(cut: str, family: str) -> None:
    assert_as_plain(encoder(cut, family), family, "layers", 0, within=1e-5)


@pytest.mark.parametrize(("above", "size"), [("bottleneck", 8), ("lora", 4)])
def test_fresh_low_rank_changes_change_nothing(above: Any, size: int) -> None:
    """LoRA's B is 0 at first. A bottleneck normalizes again, which changes nothing while gains are 1, as here."""
    assert_as_plain(encoder("e,0"), "bert", above, size, within=1e-4)


@pytest.mark.parametrize("above", ["layers", "bottleneck", "lora"])
def test_training_changes_every_tensor_above_and_no_parameter_of_the_model(above: Above) -> None:
    made = encoder("e,0")
    before = {name: tensor.clone() for name, tensor in made._model.named_parameters()}
    adapter = {name: tensor.requires_grad_() for name, tensor in made.initial(above, 4, 1).items()}
    made.pooled(*made.states(stored(made), adapter)).square().sum().backward()
    assert [name for name, tensor in adapter.items() if tensor.grad is None] == []
    assert {name.split(".")[1] for name in adapter} == {"1", "2"}
    torch.optim.SGD(adapter.values(), lr=1.0).step()
    assert all(torch.equal(tensor, before[name]) for name, tensor in made._model.named_parameters())


def test_a_text_is_the_mean_of_its_tokens_or_the_first() -> None:
    """Padding is no token, also where it is not 0."""
    hidden, mask = torch.tensor([[[1.0], [3.0], [99.0]]]), torch.tensor([[True, True, False]])
    for pool, expected in (("mean", 2.0), ("first", 1.0)):
        assert encoder("e", pool=pool).pooled(hidden, mask).item() == expected


def test_of_a_pair_the_second_text_is_of_another_type() -> None:
    """As in transformers, whose tokenizer gives token types."""
    made = encoder("e,0")
    ids, second = made.pair([5, 6], [7])
    assert (ids[second], len(ids)) == (7, 6)
    types = torch.tensor([[0] * second + [1] * (len(ids) - second)])
    expected = tiny_encoder("bert").eval()(torch.tensor([ids]), token_type_ids=types).last_hidden_state[0]
    prefixes = list(made.encode([Rendered(tuple(ids), (), len(ids), len(ids))]))
    found, _ = made.states(prefixes, made.initial("layers", 0, 1))
    torch.testing.assert_close(found[0], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("text", ["0-3", "e,1", "e,0-x", "all", ""])
def test_a_cut_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write none, e, e,0 or e,0-K"):
        FrozenPart.parse(text)


def test_no_more_layers_are_frozen_than_there_are() -> None:
    with pytest.raises(QuorumError, match=r"frozen: e,0-3: tiny-bert has 3 layers"):
        encoder("e,0-3")


def test_attention_of_bf16_is_in_fp32() -> None:
    """Of queries, keys and values in bf16, what fp32 makes of the same numbers; and so are their gradients."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 5, 4).bfloat16().requires_grad_() for _ in range(3))
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool).tril()
    with torch.autocast("cpu", torch.bfloat16):
        attended, _ = attention_in_fp32(torch.nn.Module(), query, key, value, mask)
    scores = (query.float() @ key.float().transpose(-1, -2)) / 2.0
    expected = torch.softmax(scores.masked_fill(~mask, -torch.inf), -1) @ value.float()
    assert attended.dtype == torch.float32
    assert torch.allclose(attended, expected.transpose(1, 2), atol=1e-6)
    (found,) = torch.autograd.grad(attended.square().sum(), query, retain_graph=True)
    (wanted,) = torch.autograd.grad(expected.square().sum(), query)
    assert torch.allclose(found, wanted, rtol=0.02, atol=1e-3)
