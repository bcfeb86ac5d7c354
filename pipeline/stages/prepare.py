"""data/raw/<corpus> -> data/prepared/<corpus>: one example a line; and the corpus's row of Table II."""

from __future__ import annotations

from dataclasses import asdict

from pipeline.corpora.example import write_examples
from pipeline.corpora.notes import Notes
from pipeline.corpora.qmsum import read_domains
from pipeline.corpora.readers import READERS
from pipeline.corpora.statistics import compared, table
from pipeline.plan.orders import PrepareOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table


def run(corpus: str) -> None:
    """Read a corpus, and write its examples, its notes and its statistics."""
    order = read_order(layout.order("prepare", corpus), PrepareOrder)
    notes = Notes()
    if order.span_end is None:  # a corpus whose queries are not its own
        examples, meetings = READERS[corpus](layout.raw(corpus), order.query or "", notes)
        statistics = table(examples)
    else:
        readings = {end: read_domains(layout.raw(corpus), order.own, end) for end in ("inclusive", "exclusive")}
        examples, notes, meetings = readings[order.span_end]
        statistics = compared(readings["inclusive"][0], readings["exclusive"][0])
    write_examples(layout.examples(corpus), examples)
    write_json(
        layout.notes(corpus),
        {
            "source": read_json(layout.source_record(corpus)),
            "span_end": order.span_end,
            "query": order.query,
            "meetings": meetings,
            "examples": len(examples),
            **asdict(notes),
        },
    )
    write_table(layout.data_statistics(corpus), statistics)
    say(
        f"prepare {corpus}: {len(examples)} examples of {meetings} meetings; {notes.spans_past_end} spans ran past "
        f"their transcript's end, {len(notes.dropped_empty_target)} empty targets left out, "
        f"{len(notes.dropped_tested_meeting)} training examples of tested meetings left out, "
        f"{len(notes.kept_without_turns)} examples have no turns"
    )
