"""Corpora and settings as the page on the paper has them."""

from __future__ import annotations

from typing import Any

from pipeline.report import data_tables


def test_the_reading_of_a_span_that_the_paper_has_is_told() -> None:
    """Of two rows the exclusive reading has both of the paper's turns, the inclusive one the second."""
    rows = [
        {"paper_turns": "10.00", "inclusive_turns": "11.00", "exclusive_turns": "10.00"},
        {"paper_turns": "7.50", "inclusive_turns": "7.50", "exclusive_turns": "7.501"},
        {"paper_turns": "", "inclusive_turns": "7.50", "exclusive_turns": "7.50"},  # a client of one's own
    ]
    assert data_tables.readings({"qmsum": rows}) == {"inclusive": 1, "exclusive": 2, "rows": 2}
    assert data_tables.readings({"ami": rows}) is None
    assert data_tables.readings({"qmsum": rows[2:]}) is None


def row(**cells: str) -> dict[str, str]:
    """A row of a table of one reading."""
    known = dict.fromkeys(data_tables.STATISTICS, "1")
    return {"domain": "AMI", "split": "train", "without_turns": "0", **known, **cells}


def test_a_corpus_is_told_as_it_was_read_with_the_papers_numbers_beside() -> None:
    """QMSum's inclusive reading beside Table II; AMI, which has one reading, beside nothing."""
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


def test_a_setting_is_told_by_its_clients_examples() -> None:
    entry = {"kept_tokens": 5, "transcript_tokens": 10, "tokens": 7}
    splits = {"train": [entry] * 3, "val": [entry], "test": [entry] * 2}
    (found,) = data_tables.settings({"base": {"clients": {"A": splits, "B": splits}}}, {"base": 9})
    assert (found["name"], found["clients"]) == ("base", "A 3/1/2, B 3/1/2")
