"""The paper's own numbers: rows of data/paper_results.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pipeline.tasks.rouge import AVERAGED

PaperScores = Sequence[Mapping[str, str]]
"""Rows of data/paper_results.csv."""


def average_of(row: Mapping[str, str]) -> float:
    """One row's average ROUGE: as printed, or the mean of R-1, R-2 and R-L."""
    return float(row["average"]) if row["average"] else fmean(float(row[m]) for m in AVERAGED)
