"""What experiments/fednlp tells of each run and claim is in its committed tables."""

from __future__ import annotations

import re
from collections import Counter

from conftest import ROOT
from told import prose, read, rows_of, untold

FEDNLP = ROOT / "experiments" / "fednlp"
TABLES = FEDNLP / "reports" / "tables"
METHODS = ("untrained", "fedavg", "fedprox", "fedopt", "fedavg-w", "centralized")
SCORES = {"tc": "accuracy", "st": "f1", "qa": "f1", "ss": "rougeL"}
"""Task -> what it is scored by, in the order of the page's table."""


def by_run(table: str) -> dict[str, dict[str, str]]:
    return {row["run"]: row for row in read(TABLES / f"{table}.csv")}


def score(run: str, column: str = "") -> str:
    """A run's score at its last round."""
    task = run.partition("-")[0]
    return points(by_run(f"methods-{task}")[run][column or SCORES[task]])


def points(cell: str) -> str:
    return f"{float(cell):.2f}"


def of(table: str, run: str, column: str = "accuracy") -> str:
    return points(by_run(table)[run][column])


def claim(number: int) -> dict[str, str]:
    (found,) = (row for row in read(TABLES / "claims.csv") if row["number"] == str(number))
    return found


def of_methods() -> list[str]:
    behind = claim(1)
    least, most = re.findall(r"[\d.]+", behind["interval"])[::-1]
    for task in ("st", "qa", "ss"):
        trained = {name: float(score(f"{task}-{name}")) for name in METHODS[1:]}
        assert min(trained, key=trained.__getitem__) == "fedopt"
    low, high = (float(end.replace("−", "-")) for end in claim(7)["interval"].split(" … "))
    assert low < 0 < high, "in titles the interval reaches 0"
    assert float(score("st-fedopt")) == 0
    return [
        f"ahead by {behind['paper'].strip('+')} points in classifying; here it is behind FedAvg by "
        f"{behind['here'].strip('−')} ({least} to {most})",
        f"AdamW clients under a plain mean reach {score('tc-fedavg-w')} and {score('qa-fedavg-w')}",
        f"best development round scores {score('st-fedopt', 'at_best_round')}, its last 0",
    ]


def of_skew() -> list[str]:
    even, both = (of("partitions", f"tc-{name}") for name in ("uniform", "both"))
    one, five, ten = (of("partitions", f"tc-{alpha}") for alpha in (1, 5, 10))
    assert claim(20)["word"] == "held", "curves at 1 are rougher than at 10"
    return [f"reaches {one} at α = 1, {five} at 5, {ten} at 10, {even} where labels are even, and {both} where sizes"]


def of_cuts() -> list[str]:
    paper = by_run("cuts")
    head, whole = (f"{float(paper[run]['sent_mb']):.1f}" for run in ("cut-5", "cut-none"))
    return [
        f"reaches {of('cuts', 'cut-none')} with nothing frozen, {of('cuts', 'cut-2')} with layers 0 to 2 frozen, "
        f"{of('cuts', 'cut-3')} with 0 to 3, {of('cuts', 'cut-4')} with 0 to 4, and {of('cuts', 'cut-5')} with",
        f"The head sends {head} MB, the whole encoder {whole}",
        f"The paper falls from {paper['cut-none']['paper']} to {paper['cut-5']['paper']}",
        f"at seed 1 reaches {of('cuts', 'pooled-none')} with nothing frozen, and {of('cuts', 'pooled-5')} with",
    ]


def of_owners() -> list[str]:
    mean, alone, ditto, fedkd, fednova, scaffold = (
        of("natural-uner", f"domains-{name}", "clients_mean")
        for name in ("fedavg-w", "single", "ditto", "fedkd", "fednova", "scaffold")
    )
    return [
        f"is worth {mean} to the five owners of tagging, their own training {alone}, Ditto {ditto}, FedKD {fedkd}, "
        f"FedNova {fednova}, SCAFFOLD {scaffold}"
    ]


def test_the_table_of_methods_is_that_of_the_committed_scores() -> None:
    told = [row[1:] for row in rows_of(FEDNLP / "README.md", "task | untrained")]
    assert told == [[score(f"{task}-{name}") for name in METHODS] for task in SCORES]


def test_what_the_page_tells_is_in_its_tables() -> None:
    told = prose((FEDNLP / "README.md").read_text(encoding="utf-8").split("## What came out")[1])
    assert untold(told, [*of_methods(), *of_skew(), *of_cuts(), *of_owners()]) == []


def test_the_claims_that_the_page_counts_are_those_of_its_table() -> None:
    words = Counter(row["word"].partition(" (")[0] for row in read(TABLES / "claims.csv"))
    alone = sum(row["word"] == "cannot tell (one seed)" for row in read(TABLES / "claims.csv"))
    told = (
        f"Of the {words.total()} claims {words['held']} held, {words['did not']} did not, and {words['cannot tell']} "
        f"cannot be told: {alone} of these rest on one seed"
    )
    assert told in prose((FEDNLP / "README.md").read_text(encoding="utf-8"))
