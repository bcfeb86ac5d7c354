"""What `make audit` found of run A is told, by the committed table and the audits behind it."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT
from told import FULL, prose, read, untold
from told_of_full import minus

from pipeline.report.otherwise import otherwise_records, tables_otherwise
from pipeline.runs.audits import ANEW, BEAMS, BY_ROUND, COMPARED, FP32, KNOBS, ROUNDS, VALIDATED, Audited
from pipeline.workspace import layout

RESULTS = ROOT / "docs" / "results.md"
KEPT, OURS = "kept", "fedselectkd"
TABLES = (KEPT, ANEW, ROUNDS, BEAMS, FP32)
ROWS = {
    (row["table"], row["run"]): row
    for row in read(FULL / "reports" / "tables" / "otherwise.csv")
    if row["client"] == "mean"
}
RUNS = [run for table, run in ROWS if table == ANEW]


def audited(name: str) -> Audited:
    kept = json.loads((FULL / layout.audit(name)).read_text(encoding="utf-8"))
    return Audited(kept["models"], kept["rows"], kept["rounds"])


def average(table: str, run: str) -> float:
    return float(ROWS[table, run]["average"])


def moved(table: str, before: str, metric: str = "average") -> dict[str, float]:
    """Run -> by how much an audit moves it."""
    return {run: float(ROWS[table, run][metric]) - float(ROWS[before, run][metric]) for run in RUNS}


def ahead(table: str, run: str) -> str:
    """AdaFedSelectKD's gain with its interval."""
    row = ROWS[table, run]
    return minus("{:.2f} ({:.2f} … {:.2f})".format(*(float(row[end]) for end in ("ahead", "ahead_low", "ahead_high"))))


def behind(table: str, run: str) -> str:
    row = ROWS[table, run]
    ends = (-float(row[end]) for end in ("ahead", "ahead_high", "ahead_low"))
    return minus("{:.2f} ({:.2f} … {:.2f})".format(*ends))


@pytest.mark.parametrize("name", TABLES[1:])
def test_the_committed_table_is_that_of_the_kept_audits(name: str) -> None:
    audits = {name: audited(name)}
    found = otherwise_records(tables_otherwise(audits, {}), OURS, "average")
    made = [{key: "" if own is None else str(own) for key, own in row.items()} for row in found if row["table"] == name]
    committed = read(FULL / "reports" / "tables" / "otherwise.csv")
    assert made == [row for row in committed if row["table"] == name]


def test_all_audits_looked_at_the_same_models() -> None:
    anew = audited(ANEW).models
    assert [row for row in RUNS if row not in anew] == []
    for name in KNOBS:
        assert audited(name).models.items() <= anew.items(), name
    assert len(audited(BEAMS).models) == len(audited(FP32).models) == len(COMPARED)


def test_every_number_of_run_a_made_otherwise_is_told_by_its_files() -> None:
    loss, rouge = moved(ANEW, KEPT, "loss"), moved(ANEW, KEPT)
    own = {run: rouge.pop(run) for run in ("fedkd-own", "fedselectkd-own")}
    of_loss = {run: loss.pop(run) for run in ("single", "fedkd")}
    rounds = [pair for of in audited(ROUNDS).rounds.values() for pair in of.values()]
    others = moved(ROUNDS, ANEW)
    assert max(float(ROWS[ROUNDS, run]["ahead"]) for run in RUNS if run != OURS) < 0, "behind every other row"
    assert min(float(ROWS[ROUNDS, run]["ahead_high"]) for run in RUNS if run != OURS) > 0, "each may be chance"
    small, large = (pick(float(ROWS[ROUNDS, run]["ahead"]) for run in RUNS if run != OURS) for pick in (max, min))
    assert KNOBS[ROUNDS]["validated"] == KNOBS[BY_ROUND]["validated"] == VALIDATED == 40
    sentences = [
        f"AdaSingle's test loss is {of_loss['single']:.3f} nats higher there, AdaFedKD's {of_loss['fedkd']:.3f}, and "
        f"no other row's by more than {max(loss.values()):.3f}",
        f"six rows move by {min(map(abs, rouge.values())):.2f} to {max(map(abs, rouge.values())):.2f}",
        f"AdaFedKD gains {own['fedkd-own']:.2f}, and AdaFedSelectKD {own['fedselectkd-own']:.2f}",
        f"ahead of that row by {ahead(KEPT, 'fedselectkd-own')}",
        f"it is behind by {behind(ANEW, 'fedselectkd-own')}",
        "it is ahead of AdaSingle by {}, of AdaCentralized by {}, of AdaFedAvg by {}, of AdaFedAvg's clients by {}, "
        "and of AdaFedKD by {}".format(
            *(ahead(ANEW, run) for run in ("single", "centralized", "fedavg", "fedavg-local", "fedkd"))
        ),
        f"It changes {sum(old != new for old, new in rounds)} of {len(rounds)} rounds",
        f"AdaFedSelectKD then falls from {average(ANEW, OURS):.2f} to {average(ROUNDS, OURS):.2f} and is behind every "
        f"other row, by {-small:.2f} to {-large:.2f}",
        f"AdaFedAvg loses {-others['fedavg']:.2f}",
        f"AdaFedAvg has {average(BEAMS, 'fedavg'):.2f}, and AdaFedSelectKD {average(BEAMS, OURS):.2f}",
        f"The gain is {ahead(BEAMS, 'fedavg')}, where greedy summaries of the same models have {ahead(ANEW, 'fedavg')}",
        f"AdaFedAvg has {average(FP32, 'fedavg'):.2f}, and AdaFedSelectKD {average(FP32, OURS):.2f}",
        f"the gain is {ahead(FP32, 'fedavg')}",
        f"Losses move by at most {max(abs(by) for by in _in_fp32()):.3f} nats",
    ]
    assert min(others, key=others.__getitem__) == OURS, "none falls further"
    told = RESULTS.read_text(encoding="utf-8").split("## Run A, made again and otherwise")[1].split("\n## ")[0]
    assert untold(prose(told), sentences) == []


def _in_fp32() -> list[float]:
    return [float(ROWS[FP32, run]["loss"]) - float(ROWS[ANEW, run]["loss"]) for run in ("fedavg", OURS)]
