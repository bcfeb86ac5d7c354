"""docs/paper.md: its table is that of the committed runs, and each of its numbers stands in a sentence from them."""

from __future__ import annotations

import json
from functools import cache
from statistics import fmean

import pytest
import yaml
from conftest import ROOT
from told import REPORTS, prose, read, rows_of, untold

from pipeline.report.page import signed

PAGE = ROOT / "docs" / "paper.md"
STUDIES = ("tau", "algorithms", "iid", "noniid", "extreme", "addition", "long", "sampling", "hard", "readings")
DIGITS, UNITS = {"average": 2, "loss": 4}, {"average": " average ROUGE", "loss": " nats"}
OURS, MEETINGS = "fedselectkd", ("Academic", "Committee", "Product")


@cache
def scores() -> dict[str, dict[str, dict[str, float]]]:
    """Run -> client -> its average ROUGE, if it writes summaries, and its test losses."""
    found = {}
    for path in (path for group in ("main", "more") for path in (REPORTS / "scores" / group).glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        run = found[path.stem.removesuffix("-1")] = {client: dict(own) for client, own in kept["clients"].items()}
        for client, own in run.items():
            rouge = [row["average"] for row in kept["examples"] if row["client"] == client and "average" in row]
            own.update({"average": fmean(rouge)} if rouge else {})
    return found


@cache
def studies() -> dict[str, list[str]]:
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    return {name: params["studies"][name] for name in STUDIES}


@cache
def sources() -> dict[str, str]:
    """Study -> the table or figure of the paper."""
    paper = yaml.safe_load((ROOT / "pipeline" / "report" / "paper.yaml").read_text(encoding="utf-8"))
    return {one["study"]: one["source"] for one in paper["sections"]}


@cache
def histories() -> dict[str, dict[str, dict[int, dict[str, str]]]]:
    """Run -> client -> round -> its row."""
    found: dict[str, dict[str, dict[int, dict[str, str]]]] = {}
    for path in (REPORTS / "tables" / "history.csv", REPORTS / "metrics" / "more" / "history.csv"):
        for row in read(path):
            found.setdefault(row["run"], {}).setdefault(row["client"], {})[int(row["round"])] = row
    return found


def mean_of(run: str, study: str, metric: str) -> str:
    """Over the clients that all runs of a study have; nothing of a run without summaries."""
    common = set.intersection(*(set(scores()[one]) for one in studies()[study]))
    of, digits = {"average": ("average", 2), "loss": ("best_loss", 3)}[metric]
    own = [scores()[run][client].get(of) for client in sorted(common)]
    return "" if None in own else f"{fmean(one for one in own if one is not None):.{digits}f}"


def other_loss(run: str, model: str, clients: tuple[str, ...] = MEETINGS) -> float:
    """The mean test loss of the model that a row is not about: `server` or `local`."""
    return fmean(scores()[run][client][f"{model}_loss"] for client in clients)


def pair(study: str, ours: str, theirs: str, metric: str) -> tuple[float, float, float] | None:
    """What one run is ahead of another by, and the ends of its interval."""
    for row in read(REPORTS / "metrics" / "more" / "pairs.csv"):
        if (row["study"], row["metric"]) == (study, metric) and {row["run"], row["against"]} == {ours, theirs}:
            sign = 1 if row["run"] == ours else -1
            value, *ends = (sign * float(row[name]) for name in ("gain", "low", "high"))
            return value, min(ends), max(ends)
    return None


def ahead(study: str, ours: str, theirs: str, metric: str, unit: bool = True) -> str:
    """As in `0.51 average ROUGE (0.16 … 0.85)`; nothing where one of the two wrote no summaries."""
    if (found := pair(study, ours, theirs, metric)) is None:
        return ""
    value, low, high = (signed(one, DIGITS[metric]).removeprefix("+") for one in found)
    return f"{value}{UNITS[metric] if unit else ''} ({low} … {high})"


def apart(study: str, one: str, other: str, metric: str) -> bool:
    found = pair(study, one, other, metric)
    return found is not None and not found[1] <= 0 <= found[2]


def reference_of(study: str) -> str:
    runs = studies()[study]
    return OURS if OURS in runs else next(run for run in runs if run.startswith(OURS))


def wanted() -> list[list[str]]:
    rows = []
    for study in STUDIES:
        reference = reference_of(study)
        for run in studies()[study]:
            gains = [ahead(study, reference, run, metric, unit=False) if run != reference else "" for metric in DIGITS]
            rouge, loss = (mean_of(run, study, metric) for metric in DIGITS)
            rows.append([sources()[study], run, rouge, gains[0], loss, gains[1]])
    return rows


def test_the_table_is_that_of_the_committed_runs() -> None:
    assert rows_of(PAGE, "part") == wanted()


@pytest.mark.parametrize("study", STUDIES)
def test_every_run_of_a_study_was_made(study: str) -> None:
    assert set(studies()[study]) <= set(scores())


def on_thresholds_and_algorithms() -> list[str]:
    own = [float(mean_of(run, "tau", "loss")) for run in studies()["tau"]]
    assert own == sorted(own, reverse=True), "with every step"
    assert not any(apart("tau", one, other, "average") for one in studies()["tau"] for other in studies()["tau"])
    others = studies()["algorithms"][:-1]
    assert [run for run in others if apart("algorithms", OURS, run, "average")] == ["fedopt"]
    assert not any(apart("algorithms", "fedavg", run, metric) for run in ("fedprox", "fednova") for metric in DIGITS)
    least = min((found[0] for run in others if (found := pair("algorithms", OURS, run, "loss"))), default=0.0)
    assert all(apart("algorithms", OURS, run, "loss") for run in others)
    return [
        f"at 2 it is {ahead('tau', OURS, 'tau-2', 'loss')} higher than at 5",
        f"at 6 {ahead('tau', 'tau-6', OURS, 'loss', unit=False)} lower",
        f"AdaFedOPT is worse than AdaFedAvg, by {ahead('algorithms', 'fedavg', 'fedopt', 'average')} and "
        f"{ahead('algorithms', 'fedavg', 'fedopt', 'loss')}",
        f"lower than that of each, by {least:.4f} nats or more",
    ]


def on_clients_that_are_alike() -> list[str]:
    alike = ("First", "Second", "Third")
    server = other_loss("fedselectkd-iid", "server", alike)
    assert f"{server:.3f}" == mean_of("fedavg-iid", "iid", "loss"), "as AdaFedAvg's"
    assert not any(apart("noniid", "fedselectkd-balanced", "fedavg-balanced", metric) for metric in DIGITS)
    assert not any(apart("iid", one, other, "average") for one in studies()["iid"] for other in studies()["iid"])
    return [
        f"AdaFedAvg's loss is {ahead('iid', 'fedavg-iid', 'fedselectkd-iid', 'loss')} lower",
        f"The server's model of the same training has {server:.3f} nats, as AdaFedAvg's has",
        f"Here it is {ahead('noniid', 'fedselectkd-balanced', 'fedkd-balanced', 'average')}, which may be chance",
        f"behind by {ahead('noniid', 'fedkd-balanced', 'fedselectkd-balanced', 'loss')}",
    ]


def on_samsum() -> list[str]:
    lost = {run: ahead("extreme", run, f"{run}-extreme", "average") for run in ("fedavg", "fedkd", OURS)}
    equal = {run: ahead("extreme", run, f"{run}-uniform", "loss") for run in ("fedavg", OURS)}
    later, without = (histories()[run] for run in ("fedselectkd-post", "fedselectkd-longer"))
    joined = min(later["SAMSum"])
    best = {max(n for n, row in later[client].items() if row["best"] == "1") for client in MEETINGS}
    assert best == {5, 6}
    assert joined == 9
    last = min(max(rounds) for rounds in (*later.values(), *without.values()))
    gains = [
        float(without[client][last]["validation_loss"]) - float(later[client][last]["validation_loss"])
        for client in MEETINGS
    ]
    assert pair("addition", "fedselectkd-longer", "fedselectkd-post", "loss") == (0, 0, 0), "the same models"
    moved = pair("addition", "fedselectkd-longer", "fedselectkd-post", "average")
    assert moved is not None
    for run in ("fedavg", "fedkd", OURS):
        assert all(apart("extreme", run, f"{run}-extreme", metric) for metric in DIGITS)
    with_samsum = {run: mean_of(f"{run}-extreme", "extreme", "loss") for run in ("fedkd", OURS)}
    clients = f"{other_loss('fedavg-extreme', 'local'):.3f}"
    assert clients < with_samsum["fedkd"] < with_samsum[OURS]
    there = [ahead("extreme", "fedselectkd-extreme", "fedavg-extreme", metric) for metric in DIGITS]
    from_the_start = [ahead("addition", "fedselectkd-longer", "fedselectkd-pre", metric) for metric in DIGITS]
    untrained = ahead("extreme", "fedavg-extreme", "zeroshot-extreme", "average", unit=False)
    return [
        f"AdaFedAvg loses {lost['fedavg']}",
        f"it is {untrained} above the untrained model",
        f"AdaFedKD loses {lost['fedkd']} and AdaFedSelectKD {lost[OURS].replace(' average ROUGE', '')}",
        f"So AdaFedSelectKD is ahead of AdaFedAvg there, by {' and '.join(there)}",
        f"AdaFedAvg's clients before aggregation have {clients} nats, AdaFedKD's {with_samsum['fedkd']} "
        f"and AdaFedSelectKD's {with_samsum[OURS]}",
        f"SAMSum costs AdaFedAvg {equal['fedavg']} and AdaFedSelectKD {equal[OURS]}",
        f"From the start it costs {' and '.join(from_the_start)}",
        f"SAMSum comes in with round {joined}, and the best rounds of the three are the fifth and the sixth",
        f"ROUGE moves by {abs(moved[0]):.2f}",
        f"in round {last} its validation loss is lower at all three clients, "
        f"by {min(gains):.3f} to {max(gains):.3f} nats",
    ]


def on_long_meetings_and_sampling() -> list[str]:
    length = {name: float(read(REPORTS / "tables" / f"data_{name}.csv")[-1]["words"]) for name in ("ami", "icsi")}
    tested = [read(REPORTS / "tables" / f"data_{name}.csv")[-1]["pairs"] for name in ("ami", "icsi")]
    assert not any(apart("long", "fedselectkd-long", "fedavg-long", metric) for metric in DIGITS)
    for run in ("fedavg", "fedkd", OURS):
        assert not any(apart("sampling", run, f"{run}-sampled", metric) for metric in DIGITS)
    for run in ("fedavg", OURS):
        assert not apart("sampling", f"{run}-fewer", f"{run}-sampled", "loss")
    return [
        f"of {length['ami']:,.0f} words (AMI) and {length['icsi']:,.0f} (ICSI)",
        f"On {tested[0]} and {tested[1]} test meetings",
        f"from AdaFedAvg, {ahead('long', 'fedselectkd-long', 'fedavg-long', 'average')}",
        f"AdaFedKD's loss is {ahead('long', 'fedkd-long', 'fedselectkd-long', 'loss')} lower than AdaFedSelectKD's",
        f"{ahead('long', 'fedselectkd-long', 'zeroshot-long', 'average')} above the untrained model",
        f"AdaFedSelectKD stays {ahead('sampling', 'fedselectkd-sampled', 'fedavg-sampled', 'loss')} ahead of AdaFedAvg",
    ]


def on_words_and_readings() -> list[str]:
    shares = {
        (row["client"], row["share"]): float(row["value"]) for row in read(REPORTS / "tables" / "word_shares.csv")
    }
    nouns = {row["client"]: row for row in read(REPORTS / "tables" / "pos_kd.csv") if row["pos"] == "NOUN"}

    def of_all(name: str) -> str:
        first, second, third = (f"{shares[client, name]:.0%}" for client in MEETINGS)
        return f"{first}, {second} and {third}"

    def of_nouns(name: str) -> str:
        first, second, third = (f"{float(nouns[client][name]):.0%}" for client in MEETINGS)
        return f"{first}, {second} and {third}"

    assert not any(apart("readings", OURS, run, "average") for run in studies()["readings"])
    served = ahead("readings", OURS, "fedselectkd-own", "loss")
    return [
        f"{of_all('distilled')} of the words are distilled at Academic, Committee and Product",
        f"Of nouns {of_nouns('distilled_given_pos')} are distilled",
        f"{of_nouns('pos_given_not_distilled')} of the words learned without distillation are nouns",
        f"Determiners and pronouns are {of_all('closed_given_not_distilled')} of them",
        f"behind AdaFedSelectKD by {ahead('hard', OURS, 'fedhardkd', 'loss')}",
        f"In ROUGE the distance is {ahead('hard', OURS, 'fedhardkd', 'average', unit=False)}",
        f"From the server's adapter AdaFedSelectKD's loss is {served} lower, "
        f"and AdaFedKD's {ahead('readings', 'fedkd', 'fedkd-own', 'loss', unit=False)}",
        f"AdaFedSelectKD is {ahead('readings', 'fedselectkd-own', 'single', 'loss')} below AdaSingle, "
        f"and AdaFedKD {ahead('readings', 'fedkd-own', 'single', 'loss', unit=False)}",
    ]


def on_bytes() -> list[str]:
    """What all clients send both ways until their mean validation loss is AdaFedAvg's best."""

    def path(run: str) -> list[tuple[float, float]]:
        clients, sent, found = histories()[run], 0.0, []
        for number in range(1, 1 + min(len(rounds) for rounds in clients.values())):
            rows = [rounds[number] for rounds in clients.values()]
            sent += sum(float(row["bytes_down"]) + float(row["bytes_up"]) for row in rows) / 1e6
            found.append((sent, fmean(float(row["validation_loss"]) for row in rows)))
        return found

    goal = min(loss for _, loss in path("fedavg"))
    until = {run: next(sent for sent, loss in path(run) if loss <= goal) for run in ("fedavg", OURS)}
    return [f"AdaFedSelectKD sends {until[OURS]:.0f} MB until then, and AdaFedAvg {until['fedavg']:.0f} MB"]


def sentences() -> list[str]:
    return [
        f"{len(list((REPORTS / 'scores' / 'more').glob('*.json')))} runs beside",
        *on_thresholds_and_algorithms(),
        *on_clients_that_are_alike(),
        *on_samsum(),
        *on_long_meetings_and_sampling(),
        *on_words_and_readings(),
        *on_bytes(),
    ]


def test_every_number_of_the_page_is_told_by_committed_files() -> None:
    assert untold(prose(PAGE.read_text(encoding="utf-8")), sentences()) == []
