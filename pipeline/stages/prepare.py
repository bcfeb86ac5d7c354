"""data/raw -> data/prepared/qmsum.jsonl, one example a line, and Table II beside ours."""

from __future__ import annotations

from dataclasses import asdict

from pipeline import layout
from pipeline.corpora.example import Example
from pipeline.corpora.qmsum import DOMAINS, Notes, SpanEnd, read_folder
from pipeline.corpora.statistics import table
from pipeline.files import read_json, write_json, write_jsonl
from pipeline.progress import say
from pipeline.spec import PrepareSpec, read_spec
from pipeline.tables import write_table


def run() -> None:
    spec = read_spec(layout.stage_spec("prepare"), PrepareSpec)
    readings: dict[SpanEnd, tuple[list[Example], Notes, int]] = {
        span_end: _read(spec.own, span_end) for span_end in ("inclusive", "exclusive")
    }
    examples, notes, meetings = readings[spec.span_end]
    write_jsonl(layout.PREPARED / "qmsum.jsonl", (example.to_json() for example in examples))
    write_json(
        layout.PREPARED / "notes.json",
        {
            "source": read_json(layout.RAW / "source.json"),
            "span_end": spec.span_end,
            "meetings": meetings,
            "examples": len(examples),
            **asdict(notes),
        },
    )
    write_table(layout.TABLES / "data_statistics.csv", table(readings["inclusive"][0], readings["exclusive"][0]))
    say(
        f"prepare: {len(examples)} examples of {meetings} meetings; {notes.spans_past_end} spans ran past their "
        f"transcript's end, {len(notes.dropped_empty_target)} empty targets left out, "
        f"{len(notes.kept_without_turns)} examples have no turns"
    )


def _read(own: list[str], span_end: SpanEnd) -> tuple[list[Example], Notes, int]:
    notes = Notes()
    examples: list[Example] = []
    meetings = 0
    folders = [("qmsum", domain, layout.RAW / "qmsum" / domain) for domain in DOMAINS]
    folders += [(client, client, layout.RAW / "own" / client) for client in own]
    for corpus, domain, folder in folders:
        found, count = read_folder(folder, corpus=corpus, domain=domain, span_end=span_end, notes=notes)
        examples += found
        meetings += count
    return examples, notes, meetings
