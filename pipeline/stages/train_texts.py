"""One run on labelled texts, at each of its seeds -> models/texts/<run>-<seed>: its models and its rounds."""

from __future__ import annotations

from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import TextTrainOrder
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say


def run(name: str) -> None:
    """Train a run at each of its seeds; a run of another scale gets a note instead."""
    order = read_order(layout.order("train", name), TextTrainOrder)
    note = layout.MODELS / layout.ON_TEXTS / name / "left_out.json"
    if order.left_out:
        say(f"train {name}: is a run of another scale")
        write_json(note, {})
        return
    note.unlink(missing_ok=True)
    from pipeline.runs.text_seeds import train_seeds  # torch takes seconds, which a run of another scale saves

    train_seeds(name, order)
