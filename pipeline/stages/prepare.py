"""A published source, or a file of the user -> data/prepared/<data>: one example a line; its notes and statistics."""

from collections.abc import Set
from pathlib import Path

from pipeline.corpora import own_labelled
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.documents import Document
from pipeline.corpora.example import SPLITS, write_examples
from pipeline.corpora.labelled import Labelled, Tagged
from pipeline.corpora.published_documents import of_meetings
from pipeline.corpora.readers import Read, read_source
from pipeline.corpora.statistics import counts, equal_texts, reference, with_lost_letters
from pipeline.plan.orders import PrepareOrder, read_order
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json
from pipeline.workspace.tables import write_table

CLASSED = (Labelled, Tagged)  # kinds of examples with labels or tags, which have a number of classes
FAULTS = {
    "spans_past_end": "spans ran past their transcript's end",
    "dropped_empty_target": "empty targets left out",
    "dropped_tested_meeting": "training examples of tested meetings left out",
    "kept_without_turns": "examples have no turns",
    "left_out": "training examples left out",
}
"""A reader's note -> what is printed of it."""


def run(data: str) -> None:
    """Read a data set, and write its examples, its notes and its statistics."""
    order = read_order(layout.order("prepare", data), PrepareOrder)
    task = load_task(order.task)
    source = read_json(layout.source_record(order.source))
    if order.file is None:
        read = read_source(order.source, layout.raw(order.source), order.options)
        if task.kind is Document and isinstance(read.examples[0], Conversation):
            documents, left_out = of_meetings([one for one in read.examples if isinstance(one, Conversation)])
            read = Read(documents, counts(documents), {**read.notes, "left_out": left_out})
    else:
        # In the repository itself: git need not know this file.
        examples = own_labelled.read(layout.workspace_file(Path(order.file)), task.kind, task.classes)
        read = Read(examples, counts(examples))
    write_examples(layout.examples(data), read.examples)
    by_split = {split: [example for example in read.examples if example.split == split] for split in SPLITS}
    classes = {split: set(task.classes(own)) for split, own in by_split.items()}
    notes: Json = {"source": source, "examples": len(read.examples)} | {split: len(by_split[split]) for split in SPLITS}
    notes["labels"] = len(classes["train"]) if task.kind in CLASSED else None
    notes["owners"] = len({example.owner for example in by_split["train"]} - {""})
    notes |= {**read.notes, "equal": equal_texts(read.examples)}
    notes["equal_references"] = equal_texts(read.examples, reference)
    write_json(layout.notes(data), notes)
    write_table(layout.data_statistics(data), read.statistics)
    untested = classes["train"] - classes["test"]
    _report(data, read, notes, {one[2:] for one in untested} if task.kind is Tagged else untested)


def _report(data: str, read: Read, notes: Json, untested: Set[str]) -> None:
    """Print what was read, what its reader left out, and what may surprise."""
    say(f"prepare {data}: {', '.join(f'{notes[split]} {split}' for split in SPLITS)}, of {notes['owners']} owners")
    for name, what in FAULTS.items():
        if found := read.notes.get(name):
            say(f"prepare {data}: {len(found) if isinstance(found, list) else found} {what}")
    if notes["owners"] and (without := sum(not example.owner for example in read.examples)):
        say(f"prepare {data}: {without} examples have no owner")
    for key, what in (("equal", "texts"), ("equal_references", "references")):
        if any(notes[key].values()):
            counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in notes[key].items())
            say(f"prepare {data}: examples with equal {what} in two splits: {counts}")
    for line in with_lost_letters(data, read.examples):
        say(f"prepare {data}: {line}")
    if untested:
        say(f"prepare {data}: no test example has {', '.join(sorted(untested))}")
