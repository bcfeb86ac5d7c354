"""Corpora and settings as the page on the paper has them."""

from __future__ import annotations

from typing import Any

from pipeline.report import data_tables


def test_rows_with_the_papers_turns_are_counted_for_each_reading_of_a_span() -> None:
    """Of two rows the exclusive reading has both of the paper's turns, the inclusive one the second."""
    rows = [
        {"paper_turns": "10.00", "inclusive_turns": "11.00", "exclusive_turns": "10.00"},
        {"paper_turns": "7.50", "inclusive_turns": "7.50", "exclusive_turns": "7.501"},
        {"paper_turns": "", "inclusive_turns": "7.50", "exclusive_turns": "7.50"},  # a user's client
    ]
    assert data_tables.readings({"qmsum": rows}) == {"inclusive": 1, "exclusive": 2, "rows": 2}
    assert data_tables.readings({"ami": rows}) is None
    assert data_tables.readings({"qmsum": rows[2:]}) is None


def row(**cells: str) -> dict[str, str]:
    """A row of a table of one reading."""
    known = dict.fromkeys(data_tables.STATISTICS, "1")
    return {"domain": "AMI", "split": "train", "without_turns": "0", **known, **cells}


def test_a_corpus_has_its_statistics_as_it_was_read_and_the_papers() -> None:
    """QMSum's inclusive reading with Table II; AMI, which has one reading, is not in the table."""
    both = {f"{reading}_{name}": "12" for reading in ("inclusive", "exclusive") for name in data_tables.STATISTICS}
    both |= {
        "inclusive_turns": "20",
        "paper_turns": "19",
        "inclusive_without_turns": "3",
        "exclusive_without_turns": "5",
    }
    statistics = {"qmsum": [{"domain": "Product", "split": "val"} | both], "ami": [row(turns="9")]}
    notes: dict[str, dict[str, Any]] = {
        "qmsum": {"source": {"source": "mirror", "commit": "83d7768"}, "span_end": "inclusive"},
        "ami": {"source": {"source": "sample", "commit": None}, "span_end": None},
    }
    qmsum, ami = data_tables.corpora(statistics, notes)
    assert (qmsum["corpus"], ami["corpus"]) == ("qmsum, mirror @ 83d7768", "ami, sample")
    assert dict(zip(data_tables.STATISTICS, qmsum["cells"], strict=True))["turns"] == ("20", "19")
    assert dict(zip(data_tables.STATISTICS, ami["cells"], strict=True))["turns"] == ("9", "")
    assert (qmsum["without_turns"], ami["without_turns"]) == ("3", "0")


def test_a_setting_has_its_clients_examples_and_what_truncation_lost() -> None:
    sizes = {client: {"train": 3, "val": 1, "test": 2} for client in "AB"}
    cut = {"examples": 12, "cut": 6, "of_tokens": 0.75, "of_transcript": 0.5, "full": 0, "limit": 9}
    first, second = data_tables.settings({"base": {"sizes": sizes, "cut": cut}, "lead": {"sizes": {}, "cut": None}})
    assert (first["name"], first["clients"]) == ("base", "A 3/1/2, B 3/1/2")
    assert "75%" in first["truncation"]
    assert (second["clients"], second["truncation"]) == ("", "")
