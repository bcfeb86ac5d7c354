"""What a reader must know before believing a number, from numbers worked by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from made_results import TRAINING, results_of, round_of, run_of

from pipeline.plan.orders import RunRow
from pipeline.report.limits import first_rounds, limits, truncation
from pipeline.runs.results import Results
from pipeline.runs.truncation import cut_of, meetings_tested

KD = {"share_distilled": 0.9}


def index(**meetings: Sequence[int]) -> dict[str, Any]:
    """The test examples of clients, by their meetings."""
    return {"clients": {client: {"test": [{"meeting": m} for m in of]} for client, of in meetings.items()}}


def items(runs: Sequence[RunRow], results: Results | None = None, **indices: Any) -> list[str]:
    """The list's items, of a backbone that is not the embedded one."""
    meetings = {setting: meetings_tested(own) for setting, own in indices.items()}
    return re.findall(r"<li>(.*?)</li>", limits("tiny-llama", runs, meetings, results), re.DOTALL)


ALWAYS = len(items([]))


def test_clients_with_few_test_meetings_are_named() -> None:
    """A has 30 meetings in one setting and two in the other; B nine, one of them with two examples; C enough."""
    first, second = index(A=range(30), B=[*range(9), 0]), index(A=[1, 2], C=range(30))
    (said,) = [item for item in items([], one=first, other=second) if "A 2 (other); B 9 (one)" in item]
    assert "C" not in said.partition("B 9 (one)")[2].partition(".")[0]
    assert len(items([], other=index(C=range(30)))) == ALWAYS


def with_rate(rate: float, seed: int = 1) -> RunRow:
    training = TRAINING.model_copy(update={"learning_rate": rate})
    return run_of("run")[0].model_copy(update={"training": training, "seed": seed})


def test_a_learning_rate_is_spoken_of_where_it_is_not_the_papers() -> None:
    assert len(items([with_rate(0.0002)])) == ALWAYS
    assert any("0.001" in item for item in items([with_rate(0.001)]))
    assert any("0.0002, 0.0024" in item for item in items([with_rate(0.0024), with_rate(0.0002)]))


def test_fewer_than_three_seeds_are_told_and_what_intervals_lack_always() -> None:
    texts = [" ".join(items([with_rate(0.0002, seed) for seed in range(count)])) for count in (1, 2, 3)]
    assert ["1 seed: Intervals" in texts[0], "2 seeds: Intervals" in texts[1], "seeds: Intervals" in texts[2]] == [
        True,
        True,
        False,
    ]
    assert all("not the randomness of training" in text for text in texts)


def test_the_embedded_backbones_limits_are_its_own() -> None:
    text = limits("smollm2-135m", run_of("x"), {})
    assert len(re.findall(r"<li>", text)) == len(items(run_of("x"))) + 1
    assert "Adapters sit on 2 of its 30 layers" in text


def test_scaffolds_optimizer_is_told_where_it_runs() -> None:
    scaffold = with_rate(0.0002).model_copy(update={"method": "SCAFFOLD"})
    assert len(items([scaffold])) == ALWAYS + 1


# --- adapters of the first round ------------------------------------------------------------------------------------


def test_adapters_of_the_first_round_are_counted() -> None:
    """Of the clients of the run that distils A is best in round 1 and B in round 2; the other run distils nothing."""
    distils = [round_of(1, "A", 1, best=True, figures=KD), round_of(2, "B", 1, best=True, figures=KD)]
    plain = [round_of(1, "A", 1, best=True)]
    rows = {name: run_of(name) for name in ("kd", "avg")}
    results = results_of(rows=rows, histories={"kd": distils, "avg": plain})
    assert first_rounds(results) == (1, 2)
    assert any(item.startswith("1 of the 2 adapters") for item in items([], results))


def test_where_none_is_of_the_first_round_nothing_is_said() -> None:
    later = results_of(rows={"kd": run_of("kd")}, histories={"kd": [round_of(2, "A", 1, best=True, figures=KD)]})
    assert first_rounds(later) == (0, 1)
    assert len(items([], later)) == ALWAYS


def test_a_server_has_no_adapters_that_a_client_made() -> None:
    server = [run_of("server")[0].model_copy(update={"evaluate": "server"})]
    results = results_of(rows={"server": server}, histories={"server": [round_of(1, "A", 1, best=True, figures=KD)]})
    assert first_rounds(results) == (0, 0)


def test_one_training_under_two_names_counts_once() -> None:
    """kd and kd-again are one training; kd-iid has the same knobs on other data."""
    rows = {name: run_of(name) for name in ("kd", "kd-again", "kd-iid")}
    rows["kd-iid"] = [rows["kd-iid"][0].model_copy(update={"setting": "iid"})]
    best = [round_of(1, "A", 1, best=True, figures=KD)]
    assert first_rounds(results_of(rows=rows, histories=dict.fromkeys(rows, best))) == (2, 2)


# --- truncation -----------------------------------------------------------------------------------------------------

ENTRIES = [
    {"transcript_tokens": 10, "kept_tokens": 10, "tokens": 7},
    {"transcript_tokens": 60, "kept_tokens": 30, "tokens": 8},
]


def numbers(entries: Sequence[dict[str, int]], limit: int) -> list[str]:
    return re.findall(r"\d+%?", truncation(cut_of({"clients": {"A": {"test": entries}}}, limit)))


def test_what_truncation_lost_by_hand() -> None:
    """10 of 10 and 30 of 60 tokens read: 40 of 70 (57%), 75% of the average transcript; one of two examples is cut, one
    reference full."""
    assert numbers(ENTRIES, 8) == ["57%", "75%", "1", "2", "1", "50%", "8"]


def test_no_reference_that_is_shorter_than_the_limit_was_cut() -> None:
    assert numbers(ENTRIES, 9) == ["57%", "75%", "1", "2"]


def test_of_a_setting_that_nobody_encoded_there_is_nothing_to_say() -> None:
    assert numbers([], 9) == []
