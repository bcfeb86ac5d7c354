"""What the page on a main table, its figures and its CSV files are rendered from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.evaluation.comparisons import Comparisons, Effect
from pipeline.evaluation.scores import MEAN
from pipeline.plan.orders import ReportOrder
from pipeline.report.effects import Sensitivities
from pipeline.report.paper import PaperScores
from pipeline.runs.result_files import Cut
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class MainData:
    """Everything the page shows.

    Attributes:
        comparisons: comparisons.yaml.
        effects: the effects of the comparisons, on their metrics.
        sources: data set -> where its texts are from.
        cut: what truncation lost, where it is known.
        results: of the runs that have results at all seeds.
        metrics: the task's, the main one first, and the loss last.
        selective: the run that distils selectively.
        tau: its τ in nats.
        seeds: seed -> its name on the page.
        parts: title -> the figures of one seed alone, where each seed tests other meetings.
        missing: planned runs that have no result at some seed.
        deleted: files of results that git has and the workspace lacks.
        pos, shares: rows of pos_kd.csv and word_shares.csv, where the models are at hand.
        examples: whether there is a page that quotes texts.
    """

    order: ReportOrder
    comparisons: Comparisons
    effects: Sequence[Effect]
    sources: Mapping[str, Json]
    cut: Cut | None
    results: Results
    metrics: Sequence[Metric]
    paper: PaperScores
    sensitivities: Sensitivities = ()
    selective: str | None = None
    tau: float = math.nan
    seeds: Mapping[int, str] = field(default_factory=dict)
    parts: Mapping[str, Results] = field(default_factory=dict)
    missing: Sequence[str] = ()
    deleted: Sequence[str] = ()
    pos: Sequence[Json] = ()
    shares: Sequence[Json] = ()
    examples: bool = False

    @property
    def samples(self) -> list[str]:
        """The data sets of which only the sample was available."""
        return sorted(name for name, source in self.sources.items() if source["source"] == "sample")

    @property
    def summarized(self) -> list[Metric]:
        """The metrics of the small table: the first, those with a ratio to the references, and the loss."""
        return [self.metrics[0], *(one for one in self.metrics if one.over), self.metrics[-1]]

    @property
    def compared(self) -> dict[str, Metric]:
        """Name -> the metrics that runs are compared by."""
        return {one.name: one for one in (self.metrics[0], self.metrics[-1])}

    @property
    def clients(self) -> list[str]:
        """The clients of the table, without their mean."""
        return [client for client in next(iter(self.results.metrics.values())) if client != MEAN]
