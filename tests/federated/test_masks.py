"""Masks as files with one bit per token, by client, name and round."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.federated.masks import pack_masks, unpack_masks


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
