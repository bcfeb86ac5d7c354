"""A published source, or a file of the user -> data/prepared/<data>: one example a line; its notes and statistics."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pipeline.corpora import own_texts
from pipeline.corpora.example import SPLITS, write_examples
from pipeline.corpora.labelled import Labelled, Tagged
from pipeline.corpora.readers import READERS, Read
from pipeline.corpora.statistics import counts
from pipeline.plan.orders import PrepareOrder, read_order
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table

CLASSED = (Labelled, Tagged)
"""Kinds of examples with labels or tags, which have a number of classes."""


def run(data: str) -> None:
    """Read a data set, and write its examples, its notes and its statistics.

    Raises:
        QuorumError: a file is missing or malformed.
    """
    order = read_order(layout.order("prepare", data), PrepareOrder)
    task = load_task(order.task)
    if order.source is not None:
        read = READERS[order.source](layout.raw(order.source), order.options)
        source = read_json(layout.source_record(order.source))
    else:
        # In the repository itself: git need not know this file.
        examples = own_texts.read(layout.workspace_file(Path(str(order.file))), task.kind, task.classes)
        read = Read(examples, counts(examples))
        source = {"source": "own", "commit": None}
    write_examples(layout.examples(data), read.examples)
    write_json(layout.notes(data), {"source": source, **_counted(read.examples, task), **read.notes})
    write_table(layout.data_statistics(data), read.statistics)
    _report(data, read, task)


def _counted(examples: Any, task: Any) -> dict[str, Any]:
    """Numbers of examples, of each split, of owners, and of labels where there are any."""
    splits = Counter(example.split for example in examples)
    train = [example for example in examples if example.split == "train"]
    labels = len(task.classes(train)) if task.kind in CLASSED else None
    owners = len({example.owner for example in train if example.owner})
    return {"examples": len(examples), **{s: splits[s] for s in SPLITS}, "labels": labels, "owners": owners}


def _report(data: str, read: Read, task: Any) -> None:
    """Print what was read, and what may surprise."""
    numbers = _counted(read.examples, task)
    say(f"prepare {data}: {', '.join(f'{numbers[split]} {split}' for split in SPLITS)}, of {numbers['owners']} owners")
    for name, what in read.notes.items():
        if name not in ("meetings", "span_end", "query") and what:
            say(f"prepare {data}: {name.replace('_', ' ')}: {len(what) if isinstance(what, list) else what}")
    if numbers["owners"] and (without := sum(not example.owner for example in read.examples)):
        say(f"prepare {data}: {without} examples have no owner")
    classes = {
        split: set(task.classes([example for example in read.examples if example.split == split]))
        for split in ("train", "test")
    }
    if untested := classes["train"] - classes["test"]:
        names = {one[2:] for one in untested} if task.kind is Tagged else untested
        say(f"prepare {data}: no test example has {', '.join(sorted(names))}")
