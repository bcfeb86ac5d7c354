"""What is sent arrives with the same bits, and masks are stored in one bit a token, by client, name and round."""

import torch
from conftest import noisy_adapter
from federations import BACKBONE, same
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pipeline.federated.algorithm import Sent
from pipeline.federated.masks import pack_masks, unpack_masks
from pipeline.federated.wire import deserialize, serialize, transmitted

NAMES = st.text(st.sampled_from("abc./"), min_size=1, max_size=6)
VALUES = st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(torch.tensor)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=3)


@settings(max_examples=40, deadline=None)
@given(adapter=RECORDS, memory=RECORDS)
@example(noisy_adapter(BACKBONE), {})
@example({}, {str(kind): torch.tensor(1).to(kind) for kind in (torch.int64, torch.bool, torch.float64, torch.bfloat16)})
@example({"w": torch.ones(1), "memory/w": torch.ones(2)}, {"w": torch.zeros(1), "adapter/w": torch.zeros(2)})
def test_what_arrives_is_what_was_sent(adapter: dict[str, Tensor], memory: dict[str, Tensor]) -> None:
    """Also a real adapter, other types without a dimension, and names that begin as the other record's on the wire."""
    message = Sent(adapter, memory)
    content = serialize(message)
    (arrived, size), received = transmitted(message), deserialize(content)
    for part in ("adapter", "memory"):
        sent, copy, parsed = (getattr(one, part) for one in (message, arrived, received))
        assert same(copy, sent)
        assert same(parsed, sent)
        assert list(parsed) == list(copy), "in the same order, on which sums depend"
        assert all(copy[name].dtype == parsed[name].dtype == tensor.dtype for name, tensor in sent.items())
    assert size == len(content)


def test_what_arrives_is_a_copy() -> None:
    adapter = {"w": torch.zeros(2)}
    transmitted(Sent(adapter))[0].adapter["w"].add_(1)
    assert adapter["w"].tolist() == [0.0, 0.0]


@settings(max_examples=60, deadline=None)
@given(epochs=st.integers(1, 4), tokens=st.integers(1, 40), seed=st.integers(0, 99))
def test_unpacking_is_the_inverse_of_packing(epochs: int, tokens: int, seed: int) -> None:
    rows = torch.rand(epochs, tokens, generator=torch.Generator().manual_seed(seed)) < 0.5
    (found,) = unpack_masks(pack_masks({"A/distilled/3": rows}), "A", "distilled", tokens).items()
    assert found[0] == 3
    assert torch.equal(found[1], rows)


def test_bits_by_hand() -> None:
    """1000 0000 1 -> 128 and 128: the ninth bit begins a new byte."""
    mask = torch.tensor([[True, *([False] * 7), True]])
    assert pack_masks({"A/distilled/1": mask})["A/distilled/1"].tolist() == [[128, 128]]


def test_masks_are_found_by_client_name_and_round() -> None:
    """A has two masks, one of them in two rounds; B, whose summaries are longer, has one; C has none."""
    yes, no, longer = (torch.full((1, count), count != 3) for count in (2, 3, 9))
    bits = pack_masks({"A/distilled/1": yes, "A/distilled/4": no, "A/other/2": yes, "B/distilled/1": longer})
    found = {number: rows.tolist() for number, rows in unpack_masks(bits, "A", "distilled", 2).items()}
    assert found == {1: [[True, True]], 4: [[False, False]]}
    assert list(unpack_masks(bits, "A", "other", 2)) == [2]
    assert unpack_masks(bits, "B", "distilled", 9)[1].shape == (1, 9)
    assert unpack_masks(bits, "C", "distilled", 5) == unpack_masks(pack_masks({}), "A", "distilled", 5) == {}
