"""The frozen part of a data set's texts, for every model that reads them -> work/store; data/encoded/<dataset>.json."""

from __future__ import annotations

from pipeline.model.processor import compute_with
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import EncodeTextsOrder
from pipeline.runs.text_data import prepared
from pipeline.runs.text_encoding import encode_texts
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


def run(dataset: str) -> None:
    """Encode a data set's texts and write their index."""
    order = read_order(layout.order("encode", dataset), EncodeTextsOrder)
    compute_with(order.threads)
    write_json(layout.encoded_texts(dataset), encode_texts(order, dataset, prepared(dataset, order.task)))
