"""A published data set, or a file of the user -> data/texts/<dataset>: one text a line; and its notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipeline.corpora import aeslc, iob, newsgroups, own_texts, squad
from pipeline.corpora.example import SPLITS, write_examples
from pipeline.corpora.labelled import Labelled, Tagged
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import PrepareTextsOrder
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import say

READERS: dict[str, Callable[[Path, PrepareTextsOrder, Counter[str]], Sequence[Any]]] = {
    "20news": lambda folder, order, left_out: newsgroups.read(folder, order.headers),
    "uner": lambda folder, order, left_out: iob.read_uner(folder),
    "wnut": lambda folder, order, left_out: iob.read_wnut(folder),
    "squad": lambda folder, order, left_out: squad.read(folder),
    "aeslc": lambda folder, order, left_out: aeslc.read(folder, left_out),
}


CLASSED = (Labelled, Tagged)
"""Kinds of texts with labels or tags, which have a number of classes."""


def run(dataset: str) -> None:
    """Read a data set, and write its texts and its notes.

    Raises:
        QuorumError: a file is missing or malformed.
    """
    order = read_order(layout.order("prepare", dataset), PrepareTextsOrder)
    task = load_task(order.task)
    classes = task.classes
    left_out: Counter[str] = Counter()
    if order.published is not None:
        texts = READERS[order.published](layout.raw(order.published), order, left_out)
        source = read_json(layout.source_record(order.published))
    else:
        # In the repository itself: git need not know this file.
        path = layout.workspace_file(Path(str(order.file)))
        texts = own_texts.read(path, task.kind, classes)
        source = {"source": "own", "commit": None}
    write_examples(layout.raw_texts(dataset), texts)
    counts = Counter(text.split for text in texts)
    about = {split: counts[split] for split in SPLITS}
    of_split = {split: set(classes([text for text in texts if text.split == split])) for split in ("train", "test")}
    labels = len(of_split["train"]) if task.kind in CLASSED else None
    owners = len({text.owner for text in texts if text.split == "train" and text.owner})
    more = {"left_out": left_out["train"], "labels": labels, "owners": owners}
    write_json(layout.texts_notes(dataset), {"source": source, **about, **more})
    say(f"prepare {dataset}: {', '.join(f'{about[split]} {split}' for split in SPLITS)}, of {owners} owners")
    if owners and (nobodys := sum(not text.owner for text in texts)):
        say(f"prepare {dataset}: {nobodys} texts have no owner")
    if untested := of_split["train"] - of_split["test"]:
        names = {one[2:] for one in untested} if task.kind is Tagged else untested
        say(f"prepare {dataset}: no test text has {', '.join(sorted(names))}")
