"""What travels arrives as it was sent, to the bit."""

from __future__ import annotations

import pytest
import torch
from conftest import noisy_adapter
from federations import BACKBONE, same
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pipeline.federated.wire import deserialize, serialize, transmitted

NAMES = st.text(st.sampled_from("abc./"), min_size=1, max_size=6)
VALUES = st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(torch.tensor)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=3)


@settings(max_examples=40, deadline=None)
@given(adapter=RECORDS, memory=RECORDS)
def test_what_arrives_is_what_was_sent(adapter: dict[str, Tensor], memory: dict[str, Tensor]) -> None:
    arrived, remembered, size = transmitted(adapter, memory)
    assert same(arrived, adapter)
    assert same(remembered, memory)
    content = serialize(adapter, memory)
    taken_off = deserialize(content)
    assert same(taken_off[0], arrived)
    assert same(taken_off[1], remembered)
    assert [*taken_off[0], *taken_off[1]] == [*arrived, *remembered], "in the same order, on which sums depend"
    assert size == len(content)


def test_a_real_adapter_arrives_whole() -> None:
    adapter = noisy_adapter(BACKBONE)
    assert same(transmitted(adapter, {})[0], adapter)


def test_equal_names_do_not_meet() -> None:
    """Also where a name begins as the other record's names do on the wire."""
    adapter = {"w": torch.tensor([1.0]), "memory/w": torch.tensor([2.0])}
    memory = {"w": torch.tensor([3.0]), "adapter/w": torch.tensor([4.0])}
    arrived, remembered, _ = transmitted(adapter, memory)
    assert same(arrived, adapter)
    assert same(remembered, memory)


@pytest.mark.parametrize("kind", [torch.int64, torch.bool, torch.float64, torch.bfloat16])
def test_a_tensor_keeps_its_number_format(kind: torch.dtype) -> None:
    """A count of examples is an integer of no dimension."""
    sent = torch.tensor(1).to(kind)
    (arrived,) = transmitted({}, {"n": sent})[1].values()
    assert (arrived.dtype, arrived.shape) == (sent.dtype, sent.shape)
    assert torch.equal(arrived, sent)


def test_what_arrives_is_a_copy() -> None:
    """As between two machines: who changes what arrived does not change what was sent."""
    adapter = {"w": torch.zeros(2)}
    transmitted(adapter, {})[0]["w"].add_(1)
    assert adapter["w"].tolist() == [0.0, 0.0]
