"""What the runs of a pipeline's studies found, from its committed files: the numbers that pages tell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from told import read

from pipeline.evaluation.intervals import interval_of
from pipeline.evaluation.scores import Scored, gains, over_seeds
from pipeline.plan.schema import read_whole
from pipeline.report.page import signed
from pipeline.runs.results import common_clients

METRICS, DIGITS, UNITS = ("average", "loss"), {"average": 2, "loss": 4}, {"average": " average ROUGE", "loss": " nats"}
OURS, MEETINGS = "fedselectkd", ("Academic", "Committee", "Product")


@dataclass(frozen=True)
class Ahead:
    """What one run is ahead of another by on a metric, and the ends of its interval."""

    metric: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As in `0.51 average ROUGE (0.16 … 0.85)`."""
        return self.told(UNITS[self.metric])

    def told(self, unit: str = "") -> str:
        value, low, high = (
            signed(one, DIGITS[self.metric]).removeprefix("+") for one in (self.value, self.low, self.high)
        )
        return f"{value}{unit} ({low} … {high})"

    @property
    def is_sure(self) -> bool:
        return not self.low <= 0 <= self.high


def ahead_of(ours: Sequence[Scored], theirs: Sequence[Scored], metric: str, sign_flips: int) -> Ahead:
    """What one run's examples are ahead of another's by, also where the two are of different folders."""
    found = gains(ours, theirs, metric)
    assert found is not None
    one = interval_of(found, sign_flips)
    return Ahead(metric, one.value, one.low, one.high)


@dataclass(frozen=True)
class Studies:
    """The runs of a folder with a dvc.yaml, at the one seed that it has."""

    folder: Path

    @cached_property
    def params(self) -> dict[str, Any]:
        """The keys of its params.yaml, and of the one that it lies over."""
        return read_whole(self.folder / "params.yaml")

    def runs_of(self, study: str) -> list[str]:
        found: list[str] = self.params["studies"][study]
        return found

    @cached_property
    def kept(self) -> dict[str, dict[str, Any]]:
        """Run -> its file of scores: those of every example, and the test losses of every client."""
        (seed,) = self.params["seeds"]
        scores = self.folder / "reports" / "scores"
        paths = [path for group in ("main", "more") for path in (scores / group).glob("*.json")]
        return {path.stem.removesuffix(f"-{seed}"): json.loads(path.read_text(encoding="utf-8")) for path in paths}

    @cached_property
    def scored(self) -> dict[str, list[Scored]]:
        return {run: over_seeds([own["examples"]]) for run, own in self.kept.items()}

    @cached_property
    def histories(self) -> dict[str, dict[str, dict[int, dict[str, str]]]]:
        """Run -> client -> round -> its row."""
        found: dict[str, dict[str, dict[int, dict[str, str]]]] = {}
        reports = self.folder / "reports"
        paths = (reports / "tables" / "history.csv", reports / "metrics" / "more" / "history.csv")
        for path in filter(Path.exists, paths):  # a folder may have no main table
            for row in read(path):
                found.setdefault(row["run"], {}).setdefault(row["client"], {})[int(row["round"])] = row
        return found

    @cached_property
    def pairs(self) -> dict[tuple[str, str, frozenset[str]], dict[str, str]]:
        """Study, metric and its two runs -> the row of pairs.csv."""
        rows = read(self.folder / "reports" / "metrics" / "more" / "pairs.csv")
        return {(row["study"], row["metric"], frozenset((row["run"], row["against"]))): row for row in rows}

    def ahead(self, study: str, ours: str, theirs: str, metric: str) -> Ahead:
        """Of two runs of a study, over the clients that all of its runs have, as pairs.csv has it.

        Raises:
            KeyError: the study does not compare them on this metric.
        """
        row = self.pairs[study, metric, frozenset((ours, theirs))]
        sign = 1 if row["run"] == ours else -1
        value, *ends = (sign * float(row[name]) for name in ("gain", "low", "high"))
        return Ahead(metric, value, min(ends), max(ends))

    def comparisons(self, metric: str) -> tuple[int, int]:
        """(The pairs of runs that are compared on a metric, those that can be told apart); each part counts its own."""
        sure = [self.ahead(study, *pair, metric).is_sure for study, of, pair in self.pairs if of == metric]
        return len(sure), sum(sure)

    def ahead_without(self, meeting: str, ours: str, theirs: str, metric: str) -> Ahead:
        """The same of any two runs, over all of their clients, had one meeting not been tested."""
        both = ([row for row in self.scored[run] if row.meeting != meeting] for run in (ours, theirs))
        return ahead_of(*both, metric, self.params["sign_flips"])

    def examples(self, run: str, clients: tuple[str, ...] = MEETINGS) -> list[Scored]:
        """A run's test examples of these clients."""
        return [row for row in self.scored[run] if row.client in clients]

    def writes(self, run: str) -> bool:
        return "average" in self.kept[run]["examples"][0]

    def mean_of(self, run: str, metric: str, clients: tuple[str, ...] = MEETINGS) -> float:
        return fmean(self.of_client(run, client, metric) for client in clients)

    def of_client(self, run: str, client: str, metric: str) -> float:
        """A mean score of a client's test examples; of `loss`, `local_loss` and `server_loss` in nats a token."""
        if metric.endswith("loss"):
            found: float = self.kept[run]["clients"][client]["best_loss" if metric == "loss" else metric]
            return found
        return fmean(row[metric] for row in self.kept[run]["examples"] if row["client"] == client)

    def ahead_at(self, client: str, ours: str, theirs: str, metric: str) -> float:
        """What the means of a client say, turned so that more is better: a point."""
        difference = self.of_client(ours, client, metric) - self.of_client(theirs, client, metric)
        return -difference if metric.endswith("loss") else difference

    def words_over_the_references(self, run: str, *clients: str) -> str:
        return f"{self.mean_of(run, 'length', clients) / self.mean_of(run, 'reference_length', clients):.2f}"

    def best_round(self, run: str, client: str) -> int:
        return max(number for number, row in self.histories[run][client].items() if row["best"] == "1")

    def distilled(self, run: str) -> list[float]:
        """The share of the tokens that it distils at each client of QMSum, in its best round."""
        rounds = self.histories[run]
        return [float(rounds[client][self.best_round(run, client)]["share_distilled"]) for client in MEETINGS]

    def last_round(self, run: str) -> int:
        return max(max(rounds) for rounds in self.histories[run].values())

    def ended_by_the_cap(self, run: str) -> bool:
        """Whether some client had improved within the last rounds of patience."""
        best = max(self.best_round(run, client) for client in self.histories[run])
        return self.last_round(run) - best < int(self.params["patience"])

    # -- a table of all runs, on a page --

    def table(self, studies: dict[str, str]) -> list[list[str]]:
        """Its rows' cells. `studies`: study -> what its rows begin with."""
        return [[begins, *self._row(study, run)] for study, begins in studies.items() for run in self.runs_of(study)]

    def _row(self, study: str, run: str) -> list[str]:
        """Average ROUGE, what the reference is ahead by, and length; the same of loss; the best rounds."""
        clients, reference = self._clients_of(study), self._reference_of(study)
        tests, others = ({(row.client, row.id) for row in self.examples(one, clients)} for one in (run, reference))
        comparable = run != reference and tests == others  # means of other texts tell nothing
        gains = {
            metric: self.ahead(study, reference, run, metric).told()
            for metric in METRICS
            if comparable and (metric == "loss" or (self.writes(run) and self.writes(reference)))
        }
        loss = [f"{self.mean_of(run, 'loss', clients):.3f}", gains.get("loss", "")]
        if not self.writes(run):
            return [run, "", "", "", *loss, self._rounds_of(run, clients)]
        rouge = [f"{self.mean_of(run, 'average', clients):.2f}", gains.get("average", "")]
        words = self.words_over_the_references(run, *clients)
        return [run, *rouge, words, *loss, self._rounds_of(run, clients)]

    def _reference_of(self, study: str) -> str:
        """The run that the others of a study are compared with: AdaFedSelectKD, in whatever setting, or the first."""
        runs = self.runs_of(study)
        return OURS if OURS in runs else next((run for run in runs if run.startswith(OURS)), runs[0])

    def _clients_of(self, study: str) -> tuple[str, ...]:
        common, _ = common_clients({run: self.kept[run]["clients"] for run in self.runs_of(study)})
        return tuple(common)

    def _rounds_of(self, run: str, clients: tuple[str, ...]) -> str:
        if run not in self.histories:
            return ""
        best = sorted({self.best_round(run, client) for client in clients})
        span = f"{best[0]}–{best[-1]}" if len(best) > 1 else f"{best[0]}"
        return f"{span}, cap" if self.ended_by_the_cap(run) else span
