"""What the page on the main table, its figures and its CSV files are made from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.evaluation.claims import Judged
from pipeline.evaluation.scores import MEAN, Comparison
from pipeline.plan.orders import MainOrder
from pipeline.report.figures.start_by_loss import Cell, cells_of
from pipeline.report.page import MAIN_COMMAND
from pipeline.report.paper import PaperScores
from pipeline.runs.orientation import Orientation
from pipeline.runs.results import Results
from pipeline.runs.truncation import Cut
from pipeline.tasks.task import Metric

FEW_CELLS = 2
"""With so many of the design's six cells there is nothing to compare them by."""


@dataclass(frozen=True)
class MainData:
    """Everything the page shows.

    `metrics`: those of the task, its loss last; the first is what runs are compared by. `selective`: the run that
    distils selectively, `tau` its τ in nats. `orientation`: what turns of the source score.

    Where each seed tests other meetings: `runs`: seed -> the letter of its run; `parts`: title -> the figures of one
    seed alone; `design`: those of the seed at which every cell of start by loss is made, `own_start`: our method with a
    client's own start against the others of that seed; `converging`: the claims, where each run that did not converge
    has one in its place that did; `audits`: of which claims -> rows of verdicts as they would be otherwise;
    `otherwise`: the table of one seed as `make audit` made it, a record a table, run and client; `other_tables`: what
    was changed -> rows of means; `written`: run -> the first metric of validation summaries by round, where
    `make audit` wrote some. `missing`: planned runs whose results are still to come. `made_before`: which results other
    code made, if any.
    """

    order: MainOrder
    notes: Mapping[str, Any]
    cut: Cut
    results: Results
    metrics: Sequence[Metric]
    comparisons: Sequence[Comparison]
    claims: Sequence[Judged]
    paper: PaperScores
    pos: Sequence[Mapping[str, Any]] = ()
    shares: Sequence[Mapping[str, Any]] = ()
    sensitivities: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    predictions: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    lens: Sequence[Mapping[str, Any]] = ()
    selective: str | None = None
    tau: float = math.nan
    runs: Mapping[int, str] = field(default_factory=dict)
    parts: Mapping[str, Results] = field(default_factory=dict)
    design: Results | None = None
    own_start: Sequence[Comparison] = ()
    converging: Sequence[Judged] = ()
    orientation: Orientation = field(default_factory=dict)
    missing: Sequence[str] = ()
    made_before: str = ""
    audits: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    otherwise: Sequence[Mapping[str, Any]] = ()
    other_tables: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    written: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    command: str = MAIN_COMMAND

    @property
    def summarized(self) -> list[Metric]:
        """The metrics of the small table: the first, those that are read against the references', and the loss."""
        return [self.metrics[0], *(one for one in self.metrics if one.over), self.metrics[-1]]

    @property
    def clients(self) -> list[str]:
        return [client for client in next(iter(self.results.metrics.values())) if client != MEAN]

    @property
    def cells(self) -> dict[Cell, str]:
        """Cell of start by loss -> its run; none of a table that has hardly any."""
        found = cells_of((self.design or self.results).rows)
        return found if len(found) > FEW_CELLS else {}
