"""The frozen part of a data set's texts, for every model that reads them -> work/store; data/encoded/<dataset>.json."""

from __future__ import annotations

from pipeline.corpora.prepared import examples_of
from pipeline.model.processor import compute_with
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import EncodeTextsOrder
from pipeline.runs.text_encoding import encode_texts
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


def run(dataset: str) -> None:
    """Encode a data set's texts and write their index."""
    order = read_order(layout.order("encode", dataset), EncodeTextsOrder)
    compute_with(order.threads)
    examples = examples_of([dataset], load_task(order.task).kind)
    write_json(layout.encoded_texts(dataset), encode_texts(order, dataset, examples))
