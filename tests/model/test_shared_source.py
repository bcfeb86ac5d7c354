"""Rows that share sources, and the buffers that they grow in."""

from __future__ import annotations

import torch

from pipeline.model.growing import GrowingLayer, select_rows
from pipeline.model.shared_source import RowsBySource

CPU = torch.device("cpu")


def test_rows_of_one_source_sit_together() -> None:
    """Rows 0 and 2 read source 1, row 1 source 0: two places a source, the second of source 0 empty."""
    seats = RowsBySource([1, 0, 1], 2, CPU)
    rows = torch.tensor([[1.0], [2.0], [3.0]])
    folded = seats.fold(rows)
    assert folded.tolist() == [[[2.0], [0.0]], [[1.0], [3.0]]]
    assert torch.equal(seats.unfold(folded), rows)


def test_a_source_that_nobody_reads_is_dropped() -> None:
    """Of three sources the rows that stay read 2 and 0: source 2 takes the place of 1, source 0 keeps its own."""
    seats, kept = RowsBySource([2, 1, 0], 3, CPU).select(torch.tensor([0, 2]))
    assert kept == [0, 2]
    assert (seats.owners, seats.sources, seats.places) == ([1, 0], 2, 1)


def test_a_layer_grows_and_its_rows_change_places() -> None:
    layer = GrowingLayer(room=3)
    assert layer.get_seq_length() == 0
    first, second = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    layer.update(first.view(3, 1, 1, 1), -first.view(3, 1, 1, 1))
    keys, values = layer.update(second.view(3, 1, 1, 1), -second.view(3, 1, 1, 1))
    assert keys[:, 0, :, 0].tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert torch.equal(values, -keys)
    select_rows([layer], torch.tensor([2, 1]))
    assert layer.keys[:, 0, :, 0].tolist() == [[3.0, 6.0], [2.0, 5.0]]
    keys, _ = layer.update(torch.tensor([7.0, 8.0]).view(2, 1, 1, 1), torch.zeros(2, 1, 1, 1))
    assert keys[:, 0, :, 0].tolist() == [[3.0, 6.0, 7.0], [2.0, 5.0, 8.0]]
