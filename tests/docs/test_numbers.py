"""The tables and numbers of README and docs are those of committed files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from told import ABLATIONS, FULL, REPORTS, difference, prose, read, rows_of, shown, span, untold, words
from told_of_full import at_the_limit, words_written


def test_the_laptops_main_table_is_the_committed_one() -> None:
    mean = [row for row in read(REPORTS / "tables" / "main.csv") if row["client"] == "mean"]
    wanted = [
        [row["method"], shown(row, "average", 2), words_written(row["run"], REPORTS), shown(row, "loss", 3)]
        for row in mean
    ]
    assert rows_of(ROOT / "docs" / "results.md", "method") == wanted


def test_each_difference_that_the_results_tell_is_that_of_its_row() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    told = prose(text.split("## The laptop's table")[1].split("\n## ")[0])
    nats = {run: difference("loss", run) for run in ("single", "fedavg", "fedavg-local", "fedkd", "centralized")}
    rouge = {run: difference("average", run) for run in ("zeroshot", *nats)}
    assert all(own["low"] < 0 < own["high"] for run, own in rouge.items() if run != "zeroshot"), "no row can be told"

    def seen(run: str, of_rouge: str = "", of_loss: str = "") -> str:
        return f"{rouge[run]['visible']:.2f}{of_rouge} or {nats[run]['visible']:.4f}{of_loss}"

    of_pooled = nats["centralized"]
    sentences = (
        f"below AdaSingle by {span(nats['single'], 3, -1, ' nats')}",
        f"below AdaFedAvg's model by {span(nats['fedavg'], 3, -1)}",
        f"clients before aggregation by {span(nats['fedavg-local'], 4, -1, ' nats')}",
        f"worse by {span(nats['fedkd'], 4, unit=' nats')}, which may be chance".replace("-", "−"),
        f"Against AdaCentralized it is {-of_pooled['difference']:.4f} nats lower, which may be chance "
        f"({-of_pooled['low']:.4f} lower … {of_pooled['high']:.4f} higher)",
        f"untrained backbone by {span(rouge['zeroshot'], 2, unit=' average ROUGE')}",
        f"a difference of {seen('fedavg', ' average ROUGE', ' nats')} to AdaFedAvg, of {seen('fedavg-local')} to "
        f"AdaFedAvg's clients, of {seen('single')} to AdaSingle, of {seen('fedkd')} to AdaFedKD, and of "
        f"{seen('centralized')} to AdaCentralized",
    )
    assert untold(told, sentences) == []


def test_the_lengths_that_the_results_tell_are_those_of_trained_rows() -> None:
    told, lengths = words(ROOT / "docs" / "results.md"), {}
    for row in read(REPORTS / "tables" / "main.csv"):
        if row["best_round"]:
            lengths.setdefault(row["client"], []).append(float(row["length"]))
    ends = {client: f"{min(own):.0f} to {max(own):.0f}" for client, own in lengths.items()}
    assert f"{ends['Academic']} words at Academic, {ends['Product']} at Product" in told


def test_what_the_limit_of_tokens_cuts_on_the_laptop_is_told() -> None:
    ends = at_the_limit(REPORTS)
    untrained, single = ends.pop("zeroshot"), ends.pop("single")
    told = (
        f"{untrained:.0f}% of ZeroShot's summaries end at the limit of 128 tokens, {single:.0f}% of AdaSingle's, and "
        f"{min(ends.values()):.0f}% to {max(ends.values()):.0f}% of the other rows'"
    )
    assert told in words(ROOT / "docs" / "results.md")


HISTORIES = sorted(
    path
    for folder in (ROOT, FULL, ABLATIONS)
    for pattern in ("tables/history.csv", "metrics/*/history.csv")
    for path in (folder / "reports").glob(pattern)
)


def is_left_out(row: dict[str, str]) -> bool:
    """Whether a client sat out a round of a run that draws two of three."""
    return row["run"].endswith("-sampled") and (row["bytes_up"], row["train_loss"]) == ("0", "")


@pytest.mark.parametrize("history", HISTORIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_round_of_every_committed_run_has_five_steps_or_more(history: Path) -> None:
    """One step a round by a fresh AdamW is a shock, not training. A client that is not drawn takes none."""
    steps = [int(row["steps"]) for row in read(history) if not is_left_out(row)]
    assert steps
    assert min(steps) >= 5


def test_histories_of_the_laptop_and_of_full_scale_are_committed() -> None:
    assert {ROOT / "reports" / "tables" / "history.csv", FULL / "reports" / "tables" / "history.csv"} <= set(HISTORIES)


def test_the_rounds_that_the_results_tell_are_those_of_the_histories() -> None:
    """Best rounds at the laptop's scale where the cap ended a run, and of the chosen trial of mu at full scale."""
    best: dict[str, set[str]] = {}
    for row in read(REPORTS / "tables" / "history.csv"):
        if row["best"] == "1":
            best.setdefault(row["run"], set()).add(row["round"])
    assert all(best[run] == {"5", "6"} for run in ("fedavg-local", "fedkd", "fedselectkd"))
    trials = read(FULL / "reports" / "tables" / "tuning.csv")
    (chosen,) = (row for row in trials if row["run"] == "fedprox-local" and row["chosen"] == "1")
    assert (chosen["knobs"], sorted(chosen["best_rounds"].split("/"))) == ("mu=0.001", ["6", "7", "8"])
    told = words(ROOT / "docs" / "results.md")
    assert "ended AdaFedAvg-local, AdaFedKD and AdaFedSelectKD, whose best rounds are the fifth and sixth" in told
    assert "the one with 0.001 had its best rounds from the sixth to the eighth" in told


def test_test_sets_that_are_not_whole_are_told() -> None:
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["settings"]
    tested = params["extreme"]["sizes"]["laptop"]["only"]["SAMSum"]["test_examples"]
    (there_are,) = (row["pairs"] for row in read(REPORTS / "tables" / "data_samsum.csv") if row["split"] == "test")
    even = params["noniid_balanced"]["sizes"]["laptop"]["counts"]["test"]
    assert (
        f"SAMSum's are {tested} of its {there_are} dialogues, and clients that have as many examples each test {even}"
        in words(ROOT / "docs" / "results.md")
    )


def test_what_rounding_changes_is_told() -> None:
    """On two processors with one and the same code; on one of them, decoded in other batches; and on a GPU."""
    known: dict[str, dict[str, dict[str, str]]] = {}
    for row in read(REPORTS / "benchmarks" / "processors.csv"):
        if row["client"] == "mean":
            known.setdefault(row["processor"], {})[row["run"]] = row
    here = {row["run"]: row for row in read(REPORTS / "tables" / "main.csv") if row["client"] == "mean"}

    def apart(metric: str, one: dict[str, dict[str, str]], other: dict[str, dict[str, str]]) -> dict[str, float]:
        return {run: abs(float(one[run][metric]) - float(other[run][metric])) for run in one}

    rouge = apart("average", known["AMD EPYC"], known["Intel Xeon"])
    loss = apart("loss", known["AMD EPYC"], known["Intel Xeon"])
    batches, gpu = (apart("average", known[which], here) for which in ("Intel Xeon", "NVIDIA H200"))
    untrained, of_gpu, _ = rouge.pop("zeroshot"), gpu.pop("zeroshot"), batches.pop("zeroshot")
    of_single = [found.pop("single") for found in (loss, batches, gpu)]
    for told in (
        f"AdaSingle is {of_single[0]:.4f} nats apart, and no other row more than {max(loss.values()):.4f}",
        f"trained rows are up to {max(rouge.values()):.2f} apart",
        f"and the untrained model {untrained:.2f}",
        f"AdaSingle moved by {of_single[1]:.2f}, and no other trained row by more than {max(batches.values()):.2f}",
        f"AdaSingle is {of_single[2]:.2f} from the table above, no other trained row more than "
        f"{max(gpu.values()):.2f}, and the untrained model {of_gpu:.2f}",
    ):
        assert told in words(ROOT / "docs" / "results.md")


def test_all_rows_of_the_laptop_were_decoded_twice_to_the_same_bytes() -> None:
    digests = read(REPORTS / "benchmarks" / "summaries_again.csv")
    assert len(digests) == 7
    assert all(row["first"] == row["second"] for row in digests)


def test_one_meeting_of_six_has_six_times_the_difference_of_any_other() -> None:
    """What pooling gains in loss at Committee, a meeting at a time."""
    loss: dict[str, dict[str, float]] = {}
    for run in ("single", "centralized"):
        found = json.loads((REPORTS / "scores" / "main" / f"{run}-1.json").read_text(encoding="utf-8"))
        rows = [row for row in found["examples"] if row["client"] == "Committee"]
        for meeting in {row["meeting"] for row in rows}:
            own = [row for row in rows if row["meeting"] == meeting]
            loss.setdefault(meeting, {})[run] = sum(r["loss_sum"] for r in own) / sum(r["tokens"] for r in own)
    gains = {meeting: own["single"] - own["centralized"] for meeting, own in loss.items()}
    worst = gains.pop("education_17")
    assert round(worst / max(gains.values())) == 6
    assert "one meeting of six, education_17 of Committee, has six times" in words(ROOT / "docs" / "results.md")
