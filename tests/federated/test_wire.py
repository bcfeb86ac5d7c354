"""What is sent arrives with the same bits."""

import pytest
import torch
from conftest import noisy_adapter
from federations import BACKBONE, same
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from pipeline.federated.algorithm import Sent
from pipeline.federated.wire import deserialize, serialize, transmitted

NAMES = st.text(st.sampled_from("abc./"), min_size=1, max_size=6)
VALUES = st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(torch.tensor)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=3)


@settings(max_examples=40, deadline=None)
@given(adapter=RECORDS, memory=RECORDS)
@example(noisy_adapter(BACKBONE), {})
@example({"w": torch.ones(1), "memory/w": torch.ones(2)}, {"w": torch.zeros(1), "adapter/w": torch.zeros(2)})
def test_what_arrives_is_what_was_sent(adapter: dict[str, Tensor], memory: dict[str, Tensor]) -> None:
    """Also a real adapter, and names that begin as the other record's names do on the wire."""
    message = Sent(adapter, memory)
    content = serialize(message)
    (arrived, size), received = transmitted(message), deserialize(content)
    for part in ("adapter", "memory"):
        sent, copy, parsed = (getattr(one, part) for one in (message, arrived, received))
        assert same(copy, sent)
        assert same(parsed, sent)
        assert list(parsed) == list(copy), "in the same order, on which sums depend"
    assert size == len(content)


@pytest.mark.parametrize("kind", [torch.int64, torch.bool, torch.float64, torch.bfloat16])
def test_a_tensor_keeps_its_type_and_shape(kind: torch.dtype) -> None:
    """A number of examples is an integer without a dimension."""
    sent = torch.tensor(1).to(kind)
    (arrived,) = transmitted(Sent({}, {"n": sent}))[0].memory.values()
    assert (arrived.dtype, arrived.shape) == (sent.dtype, sent.shape)
    assert torch.equal(arrived, sent)


def test_what_arrives_is_a_copy() -> None:
    adapter = {"w": torch.zeros(2)}
    transmitted(Sent(adapter))[0].adapter["w"].add_(1)
    assert adapter["w"].tolist() == [0.0, 0.0]
