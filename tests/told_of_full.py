"""The numbers of all of QMSum as pages tell them, each from the committed files of experiments/full."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from conftest import ROOT
from told import FULL, difference, read, span

from pipeline.evaluation.intervals import Interval, interval_of
from pipeline.evaluation.scores import Scored, gains, over_seeds
from pipeline.report.otherwise import SAMPLES

REPORTS = FULL / "reports"
PARTS = ("rouge1", "rouge2", "rougeL")
"""Their mean is the average of the paper's tables."""


@cache
def claims(about: str = "claims") -> dict[tuple[int, str], dict[str, Any]]:
    """(Number, endpoint) -> how the claim was judged."""
    found = json.loads((REPORTS / "claims.json").read_text(encoding="utf-8"))[about]
    return {(one["number"], one["metric"]): one for one in found}


@cache
def means() -> dict[str, dict[str, str]]:
    """Run -> its means over clients."""
    return {row["run"]: row for row in read(REPORTS / "tables" / "main.csv") if row["client"] == "mean"}


def minus(text: str) -> str:
    return text.replace("-", "−")


def gain(number: int, metric: str, digits: int, unit: str = "", sign: int = 1, about: str = "claims") -> str:
    """A claim's gain with its interval, as in `0.51 (0.16 … 0.85)`."""
    own = claims(about)[number, metric]["gain"]
    return minus(span({**own, "difference": own["value"]}, digits, sign, unit))


def value(number: int, metric: str, digits: int, about: str = "claims") -> str:
    return minus(f"{claims(about)[number, metric]['gain']['value']:.{digits}f}")


def ends(number: int, metric: str, digits: int, sign: int = 1) -> str:
    low, high = sorted(sign * claims()[number, metric]["gain"][end] for end in ("low", "high"))
    return minus(f"{low:.{digits}f} … {high:.{digits}f}")


def holm(number: int, metric: str) -> str:
    return f"{claims()[number, metric]['p_holm']:.3f}"


def over(against: str, metric: str, digits: int, unit: str, sign: int) -> str:
    """AdaFedSelectKD and a row that no claim is about, of the table of differences."""
    return minus(span(difference(metric, against, REPORTS), digits, sign, unit))


def length(run: str) -> str:
    return f"{float(means()[run]['length']):.0f}"


def words_written(run: str, reports: Path = REPORTS) -> str:
    """Mean number of words, and in parentheses over that of the references; nothing of a run that writes none."""
    mean = json.loads((reports / "metrics" / "main" / "all.json").read_text(encoding="utf-8"))[run]["mean"]
    if "length" not in mean:
        return ""
    written = mean["length"]["value"]
    return f"{written:.0f} ({written / mean['reference_length']['value']:.2f})"


def at_the_limit(reports: Path = REPORTS) -> dict[str, float]:
    """Run -> of a hundred summaries, how many end at the limit of tokens."""
    rows = [row for row in read(reports / "tables" / "main.csv") if row["client"] == "mean" and row["at_limit"]]
    return {row["run"]: float(row["at_limit"]) for row in rows}


def cut() -> dict[str, Any]:
    """What the limit of source tokens leaves of the examples."""
    found: dict[str, Any] = json.loads((FULL / "results" / "main" / "single-11.json").read_text(encoding="utf-8"))[
        "cut"
    ]
    return found


def share_read() -> str:
    of_tokens, of_example = (f"{100 * cut()[share]:.0f}%" for share in ("of_tokens", "of_transcript"))
    return f"{of_tokens} of all tokens of the gold spans, and {of_example} of the average example's"


def of_the_controls() -> str:
    """The smallest differences in loss that the table would have shown to its two controls."""
    drawn, untrained = (float(claims()[number, "loss"]["visible"]) for number in (5, 6))
    return f"and {drawn:.4f} and {untrained:.4f} nats over the two controls, `kd-random` and `teacher-initial`"


def under_the_table() -> list[str]:
    """The smallest differences that it would have shown, how much is read, and what the limit cuts."""
    visible = {place: float(one["visible"]) for place, one in claims().items()}
    units = {1: (" average ROUGE", " nats")}
    both = []
    for number, other in ((1, "AdaFedAvg"), (2, "AdaFedAvg's clients"), (3, "AdaSingle"), (4, "AdaFedKD")):
        of_rouge, of_loss = units.get(number, ("", ""))
        both.append(
            f"{visible[number, 'average']:.2f}{of_rouge} or {visible[number, 'loss']:.4f}{of_loss} over {other}"
        )
    ends = at_the_limit()
    untrained = ends.pop("zeroshot")
    return [
        f"at a level of 0.05, if it were at least {', '.join(both)}",
        share_read(),
        f"{untrained:.0f}% of ZeroShot's summaries end at the limit of 128 tokens, and {min(ends.values()):.0f}% to "
        f"{max(ends.values()):.0f}% of the trained rows'",
    ]


def of_the_paper(ours: str, theirs: str, metrics: Sequence[str] = PARTS) -> str:
    """What one method gains over another in Tables III, IV and VI, the mean over backbones, clients and metrics."""
    rows = [row for row in read(ROOT / "data" / "paper_results.csv") if row["table"] in ("III", "IV", "VI")]
    means = [
        fmean(float(row[metric]) for row in rows for metric in metrics if row["method"] == one)
        for one in (ours, theirs)
    ]
    return minus(f"{means[0] - means[1]:.2f}")


def kept_examples(run: str, seed: int) -> list[dict[str, Any]]:
    """A run's test examples at one seed; none where it was not made there."""
    paths = (FULL / "results").glob(f"m*/{run}-{seed}.json")
    return [one for path in paths for one in json.loads(path.read_text(encoding="utf-8"))["scores"]["examples"]]


@cache
def kept_scores(run: str) -> list[Scored]:
    """A run's test examples over its three seeds: every meeting is tested once."""
    return over_seeds([kept_examples(run, seed) for seed in (11, 12, 13)])


def pairs_of(ours: str, theirs: str) -> list[tuple[Scored, Scored]]:
    """What two runs scored on each test example."""
    other = {row.id: row for row in kept_scores(theirs)}
    return [(row, other[row.id]) for row in kept_scores(ours)]


def ahead_by(
    ours: str, theirs: str, metric: str, *, on: Callable[[Scored, Scored], bool] = lambda _ours, _theirs: True
) -> Interval:
    """What one run gains over another, mean over clients, more is better; `on`: the pairs of examples that count."""
    both = [pair for pair in pairs_of(ours, theirs) if on(*pair)]
    return gain_of([row for row, _ in both], [row for _, row in both], metric, 10_000)


def gain_of(ours: Sequence[Scored], theirs: Sequence[Scored], metric: str, samples: int) -> Interval:
    """Ours less theirs, mean over clients, more is better."""
    clusters = gains(ours, theirs, metric)
    assert clusters is not None
    return interval_of(clusters, samples)


def with_ends(found: Interval, digits: int, sign: int = 1, unit: str = "") -> str:
    return minus(span({"difference": found.value, "low": found.low, "high": found.high}, digits, sign, unit))


def losses(client: str = "mean") -> dict[str, float]:
    """Run -> its test loss."""
    return {row["run"]: float(row["loss"]) for row in read(REPORTS / "tables" / "main.csv") if row["client"] == client}


def ahead(ours: str, theirs: str, digits: int, client: str = "mean") -> str:
    """By how many nats of test loss, in which direction soever."""
    return f"{abs(losses(client)[theirs] - losses(client)[ours]):.{digits}f}"


def in_one_run(number: int, client: str, seed: int, digits: int = 4) -> str:
    return f"{abs(claims()[number, 'loss']['by_client'][client][str(seed)]):.{digits}f}"


def of_run_a(run: str, between: str = " and", unit: str = "") -> str:
    """Its mean over clients in ROUGE and in loss."""
    mean = json.loads((REPORTS / "metrics" / "main" / "seed-11.json").read_text(encoding="utf-8"))[run]["mean"]
    return f"{mean['average']['value']:.2f}{between} {mean['loss']['value']:.3f}{unit}"


def otherwise(number: int, metric: str, column: str) -> str:
    """What a claim would be, with the runs that converge, if the meetings were looked at in another way."""
    rows = read(REPORTS / "tables" / "robustness.csv")
    (row,) = (row for row in rows if (row["of"], row["claim"], row["endpoint"]) == ("converging", str(number), metric))
    return row[column].replace("+", "")


def in_words(gain: str) -> str:
    """`−0.1 (−0.2 … 0.1)` as `0.1 nats behind (0.2 behind … 0.1 ahead)`."""
    value, low, high = re.findall(r"−?[\d.]+", gain)
    ways = ["behind" if one.startswith("−") else "ahead" for one in (value, low, high)]
    value, low, high = (one.removeprefix("−") for one in (value, low, high))
    return f"{value} nats {ways[0]} ({low} {ways[1]} … {high} {ways[2]})"


def best_losses() -> Mapping[tuple[str, str], float]:
    """(Run, seed) -> the mean over clients of each one's least validation loss."""
    least: dict[tuple[str, str], dict[str, float]] = {}
    for row in read(REPORTS / "tables" / "history.csv"):
        own, now = least.setdefault((row["run"], row["seed"]), {}), float(row["validation_loss"] or "inf")
        own[row["client"]] = min(now, own.get(row["client"], now))
    return {place: sum(own.values()) / len(own) for place, own in least.items()}


def up_to_the_best(run: str = "fedselectkd") -> list[dict[str, str]]:
    """A run's rounds of each client at each seed, up to its best."""
    rows = [row for row in read(REPORTS / "tables" / "history.csv") if row["run"] == run]
    best = {(row["seed"], row["client"]): int(row["round"]) for row in rows if row["best"] == "1"}
    return [row for row in rows if int(row["round"]) <= best[row["seed"], row["client"]]]


def shares_distilled(run: str = "fedselectkd") -> list[float]:
    return [float(row["share_distilled"]) for row in up_to_the_best(run)]


def worse_teachers() -> list[float]:
    """By how many nats the server's adapter is worse on validation than the client after its epoch; all of them are."""
    found = [float(row["sent_validation_loss"]) - float(row["validation_loss"]) for row in up_to_the_best()]
    assert min(found) > 0
    return found


def by_run(number: int, metric: str, digits: int) -> list[str]:
    """A claim's gain in runs A, B and C."""
    own = claims()[number, metric]["by_run"]
    return [minus(f"{own[seed]:.{digits}f}") for seed in ("11", "12", "13")]


def enough(number: int) -> str:
    """How many meetings would show a gain in ROUGE in four cases of five, with Holm's correction, to ten."""
    return f"{10 * round(claims()[number, 'average']['meetings_to_show'] / 10)}"


def more(metric: str, ours: str = "fedselectkd", theirs: str = "fedavg") -> str:
    """What one run gains over another on a metric, mean over clients."""
    return f"{float(means()[ours][metric]) - float(means()[theirs][metric]):.2f}"


def stricter_tau() -> str:
    params: dict[str, Any] = yaml.safe_load((FULL / "params.yaml").read_text(encoding="utf-8"))
    return f"tau: {params['more_runs']['fedselectkd-q88']['tau']}"


def rates() -> dict[str, float]:
    """Family -> its learning rate at full scale."""
    scales: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["scales"]
    found: dict[str, float] = scales["full"]["learning_rates"]
    assert found["local"] == found["server"]
    return found


def made_anew(run: str, table: str = "anew") -> str:
    """A row's average ROUGE in run A, of the training that the audits made again; or in another of their tables."""
    rows = read(REPORTS / "tables" / "otherwise.csv")
    (own,) = (row for row in rows if (row["table"], row["run"], row["client"]) == (table, run, "mean"))
    return f"{float(own['average']):.2f}"


@cache
def examples_anew(run: str) -> list[dict[str, Any]]:
    """A row's test examples in run A, of the same training."""
    kept = json.loads((FULL / "results" / "audits" / "anew.json").read_text(encoding="utf-8"))
    return [{name: one for name, one in row.items() if name != "run"} for row in kept["rows"] if row["run"] == run]


def ahead_anew(ours: str, theirs: str, metric: str, digits: int, unit: str = "") -> str:
    """What one row gains over another in it."""
    both = (over_seeds([examples_anew(run)]) for run in (ours, theirs))
    return with_ends(gain_of(*both, metric, SAMPLES), digits, unit=unit)
