"""What `make audit` found of run A is told, and made again from the kept audits and results."""

from __future__ import annotations

import json
from functools import cache

from conftest import ROOT
from told import FULL, prose, read, untold
from told_of_full import claims, examples_anew, gain_of, kept_examples, made_anew, with_ends

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Scored, over_seeds
from pipeline.report.otherwise import KEPT, SAMPLES, otherwise_records, tables_otherwise, written_by_round
from pipeline.runs.audits import ANEW, BEAMS, BY_ROUND, COMPARED, FP32, KNOBS, ROUNDS, Audited
from pipeline.workspace import layout

SELECT, SELECT_OWN, KD_OWN = "fedselectkd", "fedselectkd-own", "fedkd-own"
JUDGED = ("single", "centralized", "fedavg", "fedavg-local", "fedkd")
"""What claims compare AdaFedSelectKD with in run A."""
RUNS = (*JUDGED, SELECT, KD_OWN, SELECT_OWN)
A, B, C = 11, 12, 13


@cache
def audited(name: str) -> Audited:
    kept = json.loads((FULL / layout.audit(name)).read_text(encoding="utf-8"))
    return Audited(kept["models"], kept["rows"], kept["rounds"])


@cache
def table(name: str) -> dict[str, list[Scored]]:
    """Run -> its test examples in run A: as judged (KEPT), or as an audit has them."""
    if name == KEPT:
        return {run: over_seeds([kept_examples(run, A)]) for run in RUNS}
    return tables_otherwise({name: audited(name)}, {})[name]


@cache
def in_all_runs(run: str) -> list[Scored]:
    """A run's examples of all 232 meetings, those of run A as made again."""
    return over_seeds([examples_anew(run), kept_examples(run, B), kept_examples(run, C)])


def gain(ours: list[Scored], theirs: list[Scored], metric: str) -> Interval:
    return gain_of(ours, theirs, metric, SAMPLES)


def ahead(name: str, run: str, metric: str = "average", digits: int = 2) -> str:
    """By how much AdaFedSelectKD is ahead of a row of a table, with its interval."""
    return with_ends(gain(table(name)[SELECT], table(name)[run], metric), digits)


def moves(name: str, before: str, metric: str = "average") -> dict[str, Interval]:
    """Run -> by how much it does better in one table than in another; of the loss, how far it falls."""
    return {run: gain(table(name)[run], table(before)[run], metric) for run in table(name)}


def test_the_committed_table_is_that_of_the_kept_audits() -> None:
    audits = {name: audited(name) for name in (ANEW, ROUNDS, BEAMS, FP32)}
    found = otherwise_records(tables_otherwise(audits, table(KEPT)), SELECT, "average")
    committed = read(FULL / "reports" / "tables" / "otherwise.csv")
    assert [{key: "" if one is None else str(one) for key, one in row.items()} for row in found] == committed


def test_all_audits_looked_at_the_same_models() -> None:
    anew = audited(ANEW).models
    assert set(anew) == set(RUNS)
    for name in KNOBS:
        assert audited(name).models.items() <= anew.items(), name
    assert len(audited(BEAMS).models) == len(audited(FP32).models) == len(COMPARED)


def test_every_number_of_run_a_made_otherwise_is_told_by_its_files() -> None:
    told = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    section = told.split("## Run A, made again and otherwise")[1].split("\n## ")[0]
    assert untold(prose(section), [*made_again(), *by_claims(), *chosen_by_rouge(), *by_beams(), *in_fp32()]) == []


def made_again() -> list[str]:
    loss, rouge = ({run: one.value for run, one in moves(ANEW, KEPT, metric).items()} for metric in ("loss", "average"))
    far = {run: -loss.pop(run) for run in ("single", "fedkd")}
    moved = moves(ANEW, KEPT)
    own = [moved.pop(run) for run in (KD_OWN, SELECT_OWN)]
    assert all(one.low > 0 for one in own)
    assert all(one.low < 0 < one.high for one in moved.values()), "these may be chance"
    assert len(moved) == 6
    sizes = [abs(rouge[run]) for run in moved]
    best = {
        (row["run"], row["client"]): int(row["round"])
        for row in read(FULL / "reports" / "tables" / "history.csv")
        if row["best"] == "1" and row["seed"] == str(A)
    }
    others = [
        (run, client)
        for run, of in audited(ROUNDS).rounds.items()
        for client, (by_loss, _) in of.items()
        if best[run, client] != by_loss
    ]
    assert [sum(one == run for one, _ in others) for run in ("single", "fedkd")] == [2, 1]
    return [
        f"For {len(others)} of {len(RUNS) * 3} rounds another is best by validation loss, two of AdaSingle's and one "
        "of AdaFedKD's among them",
        f"AdaSingle's test loss is {far['single']:.3f} nats higher, AdaFedKD's {far['fedkd']:.3f}, and no other row's "
        f"moves by more than {max(map(abs, loss.values())):.4f}",
        f"six rows move by {min(sizes):.2f} to {max(sizes):.2f}, which may be chance",
        f"AdaFedKD rises by {with_ends(own[0], 2)}, and AdaFedSelectKD by {with_ends(own[1], 2)}",
        f"with the server's start is ahead of the one with own start by {ahead(KEPT, SELECT_OWN)}",
        f"it is behind by {with_ends(gain(table(ANEW)[SELECT], table(ANEW)[SELECT_OWN], 'average'), 2, -1)}",
    ]


def by_claims() -> list[str]:
    """Gains of run A made again, and of all meetings with it in the place of the judged one."""
    for name in (KEPT, ANEW):
        assert all(gain(table(name)[SELECT], table(name)[run], "average").value > 0 for run in JUDGED), "same sign"
    of_all = {
        (run, metric): gain(in_all_runs(SELECT), in_all_runs(run), metric)
        for run in JUDGED
        for metric in ("average", "loss")
    }
    was = gain(table(KEPT)["fedkd"], table(KEPT)[SELECT], "loss")
    in_loss = [with_ends(of_all[run, "loss"], digits) for run, digits in (("fedavg", 3), ("fedavg-local", 4))]
    assert of_all["fedkd", "loss"].high < claims()[4, "loss"]["effect"] / 2, "half of the effect of claim 4"
    assert of_all["fedavg-local", "average"].high < claims()[2, "average"]["effect"] / 2, "it would be excluded"
    return [
        "in ROUGE it is ahead of AdaSingle by {}, of AdaCentralized by {}, of AdaFedAvg by {}, of AdaFedAvg's clients "
        "by {}, and of AdaFedKD by {}".format(*(ahead(ANEW, run) for run in JUDGED)),
        f"In loss it was {was.value:.4f} nats behind AdaFedKD in run A. Made again, it is "
        f"{ahead(ANEW, 'fedkd', 'loss', 4).replace(' (', ' ahead (', 1)}",
        f"AdaFedSelectKD gains {in_loss[0]} over AdaFedAvg, {in_loss[1]} over AdaFedAvg's clients and "
        f"{with_ends(of_all['single', 'loss'], 3)} over AdaSingle",
        f"Over AdaFedKD it is {with_ends(of_all['fedkd', 'loss'], 4).replace(' (', ' ahead (', 1)}",
        "In ROUGE its gains are {}, {}, {} and {}".format(
            *(with_ends(of_all[run, "average"], 2) for run in ("fedavg", "fedavg-local", "single", "fedkd"))
        ),
    ]


def chosen_by_rouge() -> list[str]:
    rounds = [pair for clients in audited(ROUNDS).rounds.values() for pair in clients.values()]
    behind = [gain(table(ROUNDS)[run], table(ROUNDS)[SELECT], "average") for run in RUNS if run != SELECT]
    assert min(one.value for one in behind) > 0, "behind every other row"
    assert all(one.low < 0 for one in behind), "each may be chance"
    moved, loss = moves(ROUNDS, ANEW), [-one.value for one in moves(ROUNDS, ANEW, "loss").values()]
    assert min(loss) > 0, "all rows have a higher loss"
    means = dict(written_by_round(audited(BY_ROUND).rows, "average")["fedkd"])
    assert {**KNOBS[ROUNDS], **KNOBS[BY_ROUND]} == {"validated": 40, "around": 2}
    return [
        f"{sum(old != new for old, new in rounds)} of {len(rounds)} rounds change",
        f"AdaFedSelectKD falls by {with_ends(moved[SELECT], 2, -1)}, from {made_anew(SELECT, ANEW)} to "
        f"{made_anew(SELECT, ROUNDS)}",
        f"behind every other row, by {min(one.value for one in behind):.2f} to "
        f"{max(one.value for one in behind):.2f}, each of which may be chance",
        f"All rows have a higher test loss, by {min(loss):.3f} to {max(loss):.3f} nats",
        f"AdaFedKD's rises by {means[4] - means[3]:.2f} from round 3 to 4, and falls by {means[4] - means[5]:.2f} to "
        "the next",
    ]


def by_beams() -> list[str]:
    assert KNOBS[BEAMS] == {"beams": 4}
    assert all(one.value > 1 for one in moves(BEAMS, ANEW).values()), "both more than a point better than greedy"
    return [
        f"AdaFedAvg has {made_anew('fedavg', BEAMS)}, and AdaFedSelectKD {made_anew(SELECT, BEAMS)}",
        f"The gain is {ahead(BEAMS, 'fedavg')}, where greedy summaries of the same models have {ahead(ANEW, 'fedavg')}",
    ]


def in_fp32() -> list[str]:
    largest = max(abs(one.value) for one in moves(FP32, ANEW, "loss").values())
    return [
        f"AdaFedAvg has {made_anew('fedavg', FP32)}, and AdaFedSelectKD {made_anew(SELECT, FP32)}",
        f"The gain is {ahead(FP32, 'fedavg')}",
        f"Losses move by at most {largest:.4f} nats",
    ]
