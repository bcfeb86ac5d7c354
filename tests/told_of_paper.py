"""What the runs of `make repro-all` found: the numbers behind docs/paper.md, from committed files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

import yaml
from conftest import ROOT
from told import REPORTS, read

from pipeline.evaluation.intervals import interval_of
from pipeline.evaluation.scores import Scored, gains, over_seeds
from pipeline.report.page import signed

STUDIES = ("tau", "algorithms", "iid", "noniid", "extreme", "addition", "long", "sampling", "hard", "readings")
METRICS, DIGITS, UNITS = ("average", "loss"), {"average": 2, "loss": 4}, {"average": " average ROUGE", "loss": " nats"}
OURS, MEETINGS = "fedselectkd", ("Academic", "Committee", "Product")


@cache
def params() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    return found


def runs_of(study: str) -> list[str]:
    found: list[str] = params()["studies"][study]
    return found


@cache
def kept() -> dict[str, dict[str, Any]]:
    """Run -> its file of scores: those of every example, and the test losses of every client."""
    paths = [path for group in ("main", "more") for path in (REPORTS / "scores" / group).glob("*.json")]
    return {path.stem.removesuffix("-1"): json.loads(path.read_text(encoding="utf-8")) for path in paths}


@cache
def scored(run: str) -> list[Scored]:
    return over_seeds([kept()[run]["examples"]])


@cache
def histories() -> dict[str, dict[str, dict[int, dict[str, str]]]]:
    """Run -> client -> round -> its row."""
    found: dict[str, dict[str, dict[int, dict[str, str]]]] = {}
    for path in (REPORTS / "tables" / "history.csv", REPORTS / "metrics" / "more" / "history.csv"):
        for row in read(path):
            found.setdefault(row["run"], {}).setdefault(row["client"], {})[int(row["round"])] = row
    return found


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


@cache
def pairs() -> dict[tuple[str, str, frozenset[str]], dict[str, str]]:
    """Study, metric and its two runs -> the row of pairs.csv."""
    rows = read(REPORTS / "metrics" / "more" / "pairs.csv")
    return {(row["study"], row["metric"], frozenset((row["run"], row["against"]))): row for row in rows}


def ahead(study: str, ours: str, theirs: str, metric: str) -> Ahead:
    """Of two runs of a study, over the clients that all of its runs have, as pairs.csv has it.

    Raises:
        KeyError: the study does not compare them on this metric.
    """
    row = pairs()[study, metric, frozenset((ours, theirs))]
    sign = 1 if row["run"] == ours else -1
    value, *ends = (sign * float(row[name]) for name in ("gain", "low", "high"))
    return Ahead(metric, value, min(ends), max(ends))


def ahead_without(meeting: str, ours: str, theirs: str, metric: str) -> Ahead:
    """The same of any two runs, over all of their clients, had one meeting not been tested."""
    found = gains(*([row for row in scored(run) if row.meeting != meeting] for run in (ours, theirs)), metric)
    assert found is not None
    one = interval_of(found, params()["sign_flips"])
    return Ahead(metric, one.value, one.low, one.high)


def writes(run: str) -> bool:
    return "average" in kept()[run]["examples"][0]


def mean_of(run: str, metric: str, clients: tuple[str, ...] = MEETINGS) -> float:
    return fmean(of_client(run, client, metric) for client in clients)


def of_client(run: str, client: str, metric: str) -> float:
    """A mean score of a client's test examples; of `loss`, `local_loss` and `server_loss` in nats a token."""
    if metric.endswith("loss"):
        found: float = kept()[run]["clients"][client]["best_loss" if metric == "loss" else metric]
        return found
    return fmean(row[metric] for row in kept()[run]["examples"] if row["client"] == client)


def words_over_the_references(run: str, *clients: str) -> str:
    return f"{mean_of(run, 'length', clients) / mean_of(run, 'reference_length', clients):.2f}"


def best_round(run: str, client: str) -> int:
    return max(number for number, row in histories()[run][client].items() if row["best"] == "1")


def last_round(run: str) -> int:
    return max(max(rounds) for rounds in histories()[run].values())


def ended_by_the_cap(run: str) -> bool:
    """Whether some client had improved within the last rounds of patience."""
    return last_round(run) - max(best_round(run, client) for client in histories()[run]) < params()["patience"]
