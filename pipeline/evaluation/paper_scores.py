"""The paper's own numbers: rows of data/paper_results.csv -> averages and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pipeline.corpora.qmsum import DOMAINS
from pipeline.evaluation.rouge import AVERAGED

Paper = Sequence[Mapping[str, str]]
"""Rows of data/paper_results.csv."""

OURS = "AdaFedSelectKD"
"""The method that the paper proposes, and every table compares with the others."""
MAIN_TABLES = ("III", "IV", "VI")
"""The main results with BART-large, BART-base and LED-large."""


def average_of(row: Mapping[str, str]) -> float:
    """One row's average ROUGE: as printed, or the mean of R-1, R-2 and R-L."""
    return float(row["average"]) if row["average"] else fmean(float(row[m]) for m in AVERAGED)


def average(paper: Paper, table: str, method: str, clients: Sequence[str] = DOMAINS) -> float:
    """A method's average ROUGE over clients, the three domains unless said, of one of the paper's tables."""
    rows = [row for row in paper if row["table"] == table and row["method"] == method and row["client"] in clients]
    return fmean(average_of(row) for row in rows)


def effect(paper: Paper, table: str, ours: str, theirs: str, clients: Sequence[str] = DOMAINS) -> float:
    return average(paper, table, ours, clients) - average(paper, table, theirs, clients)


def main_effects(paper: Paper, theirs: str) -> list[float]:
    """AdaFedSelectKD's gain over another method, with each of the three backbones."""
    return [effect(paper, table, OURS, theirs) for table in MAIN_TABLES]
