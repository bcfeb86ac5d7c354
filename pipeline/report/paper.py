"""paper.yaml, typed: the paper's tables and figures, and our studies on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import yaml
from pydantic import Field

from pipeline.tasks.rouge import AVERAGED
from pipeline.workspace.record import Record

PAPER = Path(__file__).with_name("paper.yaml")


class Section(Record):
    """One table or figure of the paper, and the study of params.yaml that is its counterpart.

    `says`: the paper's words in short. `tables`: those of its tables in paper_results.csv. `remark`: what differs here,
    or where the paper contradicts itself.
    """

    study: str
    source: str
    title: str
    says: str = ""
    tables: tuple[str, ...] = Field(default=(), strict=False)
    remark: str = ""


class Paper(Record):
    """Its tables and figures, in its order."""

    sections: tuple[Section, ...] = Field(strict=False)

    def with_studies(self, studies: Iterable[str]) -> list[Section]:
        """The sections, and one for each study of params.yaml that is no section's counterpart."""
        known = {section.study for section in self.sections}
        own = [Section(study=name, source="your study", title=name) for name in studies if name not in known]
        return [*self.sections, *own]


def read_paper(path: Path = PAPER) -> Paper:
    """Parse paper.yaml."""
    return Paper.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


PaperScores = Sequence[Mapping[str, str]]
"""Rows of data/paper_results.csv: the paper's own numbers."""


def average_of(row: Mapping[str, str]) -> float:
    """One row's average ROUGE: as printed, or the mean of R-1, R-2 and R-L."""
    return float(row["average"]) if row["average"] else fmean(float(row[m]) for m in AVERAGED)
