"""The tables and numbers of docs/performance.md are those of committed files."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from told import ABLATIONS, REPORTS, read, rounds_of_laptop, rows_of, seconds_of_a_round, words

from benchmarks import table

PAGE = ROOT / "docs" / "performance.md"


def comparisons() -> dict[str, list[dict[str, Any]]]:
    """What `make bench` measured: comparison -> its rows."""
    found: dict[str, list[dict[str, Any]]] = json.loads(
        (REPORTS / "benchmarks" / "results.json").read_text(encoding="utf-8")
    )
    return found


def best(history: Path) -> dict[tuple[str, str], tuple[str, float]]:
    """(Run, client) -> its best round, and the validation loss there."""
    of = {(row["run"], row["client"]): row for row in read(history) if row["best"] == "1"}
    return {which: (row["round"], float(row["validation_loss"])) for which, row in of.items()}


def bound(nats: float) -> str:
    """What a difference does not exceed, in four digits."""
    return f"{math.ceil(nats * 1e4) / 1e4:.4f}"


@pytest.mark.parametrize("when", ["before", "now"])
def test_the_parts_of_make_repro_are_the_measured_ones(when: str) -> None:
    parts: dict[str, Any] = json.loads((REPORTS / "benchmarks" / "parts.json").read_text(encoding="utf-8"))[when]
    column = {"before": 1, "now": 2}[when]
    stated = {row[0]: row[column] for row in rows_of(PAGE, "part")}
    wanted = {name: f"{minutes:.1f} min" for name, minutes in (parts["parts"] | {"all": parts["total"]}).items()}
    assert {name.split(",")[0]: minutes for name, minutes in stated.items()} == wanted


def test_what_messages_over_flower_cost_is_what_was_measured() -> None:
    measured = REPORTS / "benchmarks" / "messages.md"
    assert rows_of(PAGE, "what | measured") == rows_of(measured, "what")


def test_what_the_page_on_performance_tells_of_a_gpu_is_what_was_measured() -> None:
    """Its steps, and how far its trainings' best rounds and validation losses are from the laptop's."""
    rows = comparisons()["training_step"]
    measured = [table.markdown([row]).splitlines()[-1].split(" | ")[2:5] for row in rows if " on a GPU" in row["what"]]
    stated = rows_of(PAGE, "step in bf16")
    assert [[ours, plainly.removesuffix(", compiled"), times] for _, ours, plainly, times in stated] == measured

    here, there = best(REPORTS / "tables" / "history.csv"), best(REPORTS / "benchmarks" / "gpu_history.csv")
    assert {which for which, (number, _) in here.items() if number != there[which][0]} == {("single", "Committee")}
    moved = {which: abs(loss - there[which][1]) for which, (_, loss) in here.items()}
    of_single = max(moved.pop(which) for which in list(moved) if which[0] == "single")
    for told in (
        f"no client's best validation loss moves by more than {bound(max(moved.values()))} nats",
        f"AdaSingle moves more, by {bound(of_single)} at most",
        f"Committee's best round is {there['single', 'Committee'][0]} there and {here['single', 'Committee'][0]} here",
    ):
        assert told in words(PAGE)


def test_the_times_on_a_gpu_are_the_measured_ones() -> None:
    took = {row["what"]: row["seconds"] for row in read(REPORTS / "benchmarks" / "gpu_times.csv")}
    told = words(PAGE)
    for sentence in (
        f"A training of AdaFedSelectKD takes {took['a training of AdaFedSelectKD alone']} s there, start included",
        f"Four trainings side by side took {took['four trainings side by side']} s together; six, on another day, "
        f"{took['six trainings side by side']} s",
        f"took {took['fifteen trials of the ablations six at a time']} s",
        f"the summaries of the seven rows {took['the summaries of seven rows']} s in one process",
        f"All of it took {took['run A trained again and all its audits side by side']} s",
    ):
        assert sentence in told
    assert len(read(ABLATIONS / "reports" / "tables" / "tuning.csv")) == 15
    first, again = (read(REPORTS / "benchmarks" / f"gpu_history{which}.csv") for which in ("", "_again"))
    assert again == [{name: row[name] for name in again[0]} for row in first], "all six gave the same losses"


def test_the_times_without_bf16_are_the_measured_ones() -> None:
    took = {row["what"]: int(row["seconds"]) for row in read(REPORTS / "benchmarks" / "avx2_times.csv")}
    encoding, summaries = took["encoding 486 examples"], took["the summaries of AdaFedAvg-local"]
    plain, taught = took["eight rounds of AdaFedAvg-local"] / 8, took["four rounds of AdaFedKD"] / 4
    scores = json.loads((REPORTS / "scores" / "main" / "fedavg-local-1.json").read_text(encoding="utf-8"))
    reading = encoding / 486 * len(scores["examples"])
    rounds = rounds_of_laptop()
    of_teachers = rounds["fedkd"] + rounds["fedselectkd"]
    training = of_teachers * taught + (sum(rounds.values()) - of_teachers) * plain
    hours = (encoding + training + reading + 7 * (summaries - reading)) / 3600
    told = words(PAGE)
    for sentence in (
        f"Encoding took {encoding:,} s. A round of AdaFedAvg-local took {plain:.0f} s, and one of AdaFedKD, which has "
        f"a teacher, {taught:.0f} s; on the Xeon with AMX a round takes {seconds_of_a_round():.0f} s",
        f"The summaries of one row took {summaries:,} s, of which some {reading:.0f} s are the reading of the test "
        "meetings",
        f"encoding, {sum(rounds.values())} rounds and seven rows of summaries take {hours:.1f} hours there",
    ):
        assert sentence in told
    assert f"an hour and a quarter, some {hours:.0f} hours without bf16" in words(ROOT / "README.md")


def test_the_losses_without_bf16_are_those_of_the_laptops_table() -> None:
    here, there = best(REPORTS / "tables" / "history.csv"), best(REPORTS / "benchmarks" / "avx2_history.csv")
    assert {run for run, _ in there} == {"fedavg-local"}
    assert [number for number, _ in there.values()] == [here[which][0] for which in there]
    moved = max(abs(loss - here[which][1]) for which, (_, loss) in there.items())
    assert f"no client's best validation loss moves by more than {bound(moved)} nats ([its history]" in words(PAGE)


def test_what_the_commands_take_is_what_was_measured() -> None:
    measured = read(REPORTS / "benchmarks" / "commands.csv")
    assert rows_of(PAGE, "command | time") == [list(row.values()) for row in measured]


def test_how_many_fewer_bytes_adapters_send_is_the_models_size_over_theirs() -> None:
    sizes = rows_of(ROOT / "benchmarks" / "SCALE.md", "model | the whole")[0]
    model, adapter = (float(cell.split(" MB")[0]) for cell in sizes[1:3])
    sent = {row["bytes_up"] for row in read(REPORTS / "tables" / "history.csv")} - {"0"}
    assert [f"{int(one) / 1e6:.1f}" for one in sent] == [f"{adapter:.1f}"], "as in the trainings"
    assert f"send {model / adapter:.0f} times fewer bytes" in words(PAGE)


def test_the_reasons_for_missed_aims_are_in_measured_numbers() -> None:
    measured = comparisons()
    (of_step,) = measured["arithmetic"]
    kernels = of_step["details"]["gigaflops_a_second_of_the_best_kernels"]
    step, memory = measured["training_step"][:2]
    prefill = measured["prefill"][0]
    stored, whole = (row["ours"]["median"] for row in measured["federated_run"][:2])
    apart = measured["federated_run"][2]["details"]["ours"]
    loop = next(row for row in measured["loop_overhead"] if row["what"].endswith("1,000 clients"))
    told = words(PAGE)
    for sentence in (
        f"A step in bf16 runs at {of_step['ratio']:.0%} of the speed of the machine's best kernels",
        f"**The step, {step['ratio']:.1f} of {step['promised']:.0f}.** Products at the best kernels' speed would take "
        f"{of_step['ratio']:.0%} of its time",
        f"**Its memory, {memory['ratio']:.2f} of {memory['promised']:.0f}.** About half of its "
        f"{memory['details']['ours'] / 1000:.2f} GB",
        f"**The prefill, {prefill['ratio']:.2f} of {prefill['promised']:.0f}.**",
        f"At {kernels:.0f} GFLOP/s, the speed of this machine's best kernels in a training step, that takes "
        f"{273 / kernels:.2f} s; the aim is {prefill['theirs']['median'] / prefill['promised']:.2f} s, and "
        f"{prefill['ours']['median']:.2f} s was measured",
        f"Of its {whole:.1f} s encoding is {whole - stored:.1f} s",
        f"**The loop against Flower's, {loop['ratio']:.1f} of {loop['promised']:.0f}.**",
        f"packed and hashed, {1000 * loop['ours']['median']:.2f} ms a client-round",
        f"**The largest difference of two final adapters, {apart:.5f} where 0.0001 would agree.**",
    ):
        assert sentence in told
    assert rows_of(ROOT / "benchmarks" / "SCALE.md", "model | source")[1][1:3] == ["1,024", "273 GFLOP"]


def test_every_missed_aim_is_told() -> None:
    """Nine, of eight reasons: the two of SmolLM2's beams have one."""
    rows = [row for group in comparisons().values() for row in group if row["promised"] is not None]
    missed = [row for row in rows if row["ratio"] < row["promised"]]
    assert len(missed) == 9
    page = PAGE.read_text(encoding="utf-8").split("Nine rows of the table missed their aims")[1].split("\n##")[0]
    bullets = [line for line in page.splitlines() if line.startswith("- **")]
    assert len(bullets) == 8

    def of(what: str) -> list[str]:
        return [f"{row['ratio']:.3g} of {row['promised']:.0f}" for row in missed if what in row["what"]]

    assert f"- **The step on a GPU, {of('on a GPU')[0]}.**" in bullets[2]
    assert f"- **Beams of SmolLM2, {' and '.join(of('beam search, 4 beams, SmolLM2'))}.**" in bullets[4]
    assert f"- **A federated run with encoding, {of('encoding included')[0]}.**" in bullets[5]


def test_the_readme_asks_for_what_the_commands_took() -> None:
    """With room beside it: memory in GiB, and disk in GB, `.venv` included."""
    told = words(ROOT / "README.md")
    ask = re.search(r"(\d+) GiB of memory and (\d+) GB of disk \((\d+) and (\d+) for `make repro-all`\)", told)
    assert ask
    took = {row["command"]: row for row in read(REPORTS / "benchmarks" / "commands.csv")}
    small = next(row for command, row in took.items() if command.startswith("`make repro`"))
    large = next(row for command, row in took.items() if command.startswith("`make repro-all`"))
    long = next(row for command, row in took.items() if "on AMI and ICSI" in command)

    def numbers(text: str) -> list[float]:
        return [float(one) for one in re.findall(r"\d+\.?\d*", text)]

    memory, disk, more_memory, more_disk = map(int, ask.groups())
    assert max(numbers(small["memory"])) <= memory
    assert sum(numbers(small["disk"])) <= disk
    assert max(numbers(long["memory"])) <= more_memory
    assert sum(numbers(large["disk"])) <= more_disk


def test_what_bf16_changes_is_what_was_measured() -> None:
    found = {row["what"]: row for row in json.loads(words(REPORTS / "benchmarks" / "precision.json"))["lines"]}
    rouge = found["average ROUGE of validation summaries"]
    low, high, same = re.findall(r"\d+\.\d+|\d+(?=%)", rouge["more"].partition("95% interval")[2])
    told = (
        f"{same}% of the summaries are the same, and their average ROUGE is {-rouge['difference']:.2f} lower in bf16, "
        f"which may be chance ({float(low):.2f} lower … {float(high):.2f} higher)"
    )
    assert told in words(ROOT / "docs" / "operating.md")
    of_losses = [abs(row["difference"]) for what, row in found.items() if what.startswith("loss of")]
    assert len(of_losses) == 6
    assert max(of_losses) < 0.001
