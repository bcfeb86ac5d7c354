"""Differences with intervals between every two runs of a section, on the test meetings that both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from pipeline.evaluation.intervals import Interval, columns, interval_of
from pipeline.evaluation.scores import ScoresBySeed
from pipeline.federated.methods import OURS
from pipeline.report.page import gain_digits, gain_text
from pipeline.runs.results import Results, common_clients
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class Pair:
    """What one run of a section gains over another on a metric; more is better, also for a loss.

    The mean over the clients that all runs of the section have.
    """

    section: str
    metric: Metric
    run: str
    against: str
    gain: Interval

    def to_row(self) -> Json:
        """A row of pairs.csv."""
        return {
            "study": self.section,
            "metric": self.metric.name,
            "run": self.run,
            "against": self.against,
            **columns(self.gain, "gain", "low", "high"),
        }


def pairs_of(
    section: str, runs: Sequence[str], results: Results, metrics: Sequence[Metric], samples: int
) -> list[Pair]:
    """A section's pairs on each metric that both runs have, at the seeds of both; without summaries, on the loss alone.

    Args:
        samples: random signs of meetings behind each interval.
    """
    common, _ = common_clients({run: results.metrics[run] for run in runs})
    of_common = {
        seed: {run: [row for row in rows if row.client in common] for run, rows in own.items() if run in runs}
        for seed, own in results.scored_by_seed.items()
    }
    scores = ScoresBySeed(of_common, {metric.name: metric for metric in metrics})
    pairs = []
    for metric in metrics:
        for run, against in combinations(runs, 2):
            found = scores.contrast({run: 1, against: -1}, metric.name, None)
            if found is not None:
                pairs.append(Pair(section, metric, run, against, interval_of(found, samples)))
    return pairs


def reference_of(runs: Sequence[str], results: Results) -> str | None:
    """The run with which the page compares a section's others: the first of our method in the order of params.yaml."""
    ours = [run for run in results.rows if run in runs and results.rows[run][0].part == OURS]
    return next(iter(ours), None)


def ahead_by(pairs: Sequence[Pair], reference: str | None) -> dict[str, dict[str, str]]:
    """Run -> metric -> the text of what the reference gains over it, with its interval."""
    found: dict[str, dict[str, str]] = {}
    for pair in pairs:
        if reference in (pair.run, pair.against):
            gain, other = (pair.gain, pair.against) if pair.run == reference else (_reversed(pair.gain), pair.run)
            found.setdefault(other, {})[pair.metric.name] = gain_text(gain, gain_digits(pair.metric))
    return found


def _reversed(gain: Interval) -> Interval:
    return replace(gain, value=-gain.value, low=-gain.high, high=-gain.low)
