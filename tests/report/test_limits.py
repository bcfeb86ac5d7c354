"""What a reader must know before believing a number, from numbers worked by hand."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from made_results import order_of, results_of, round_of, row_of, run_of

from pipeline.evaluation.scores import Scored
from pipeline.federated.history import Round
from pipeline.plan.orders import RunRow
from pipeline.report.notes import first_rounds, limits, truncation
from pipeline.runs.results import Results

KD = {"share_distilled": 0.9}


def items(
    runs: Sequence[RunRow], results: Results | None = None, backbone: str = "tiny-llama", **meetings: dict[str, int]
) -> list[str]:
    """The list's items; `meetings`: setting -> client -> on how many meetings it is tested."""
    tests = {
        setting: [Scored("e", client, f"m{n}", 1, {}) for client, count in own.items() for n in range(count)]
        for setting, own in meetings.items()
    }
    if results is None:
        rows = {setting: [row_of(setting, setting=setting)] for setting in meetings}
        results = results_of(rows=rows, scored=tests, histories={name: [] for name in meetings})
    return re.findall(r"<li>(.*?)</li>", limits(order_of(runs, backbone=backbone), results), re.DOTALL)


ALWAYS = len(items([]))


def test_clients_with_few_test_meetings_are_named() -> None:
    """A has 30 meetings in one setting and two in the other; B nine; C enough."""
    first, second = {"A": 30, "B": 9}, {"A": 2, "C": 30}
    (found,) = [item for item in items([], one=first, other=second) if "A 2 (other); B 9 (one)" in item]
    assert "C" not in found.partition("B 9 (one)")[2].partition(".")[0]
    assert len(items([], other={"C": 30})) == ALWAYS


KD_RUN, OTHER_DATA = run_of("kd"), [row_of("kd-iid", setting="iid")]
FIRST, SECOND = (round_of(n, "A", 1, best=True, figures=KD) for n in (1, 2))


@pytest.mark.parametrize(
    ("runs", "count"),
    [
        ({"kd": (KD_RUN, [FIRST, SECOND]), "avg": (run_of("avg"), [replace(FIRST, figures={})])}, (1, 2)),
        ({"kd": (KD_RUN, [SECOND])}, (0, 1)),
        ({"kd": (KD_RUN, [FIRST]), "kd-again": (run_of("kd-again"), [FIRST]), "iid": (OTHER_DATA, [FIRST])}, (2, 2)),
        ({"server": ([row_of("server", evaluate="server")], [FIRST])}, (0, 0)),
    ],
    ids=["a run that distils nothing", "a later round", "one training with two names", "the server's model"],
)
def test_adapters_of_the_first_round_are_counted(
    runs: dict[str, tuple[list[RunRow], list[Round]]], count: tuple[int, int]
) -> None:
    """A limit names their number, unless it is 0."""
    rows, histories = ({name: one[part] for name, one in runs.items()} for part in (0, 1))
    results = results_of(rows=rows, scored={name: [] for name in rows}, histories=histories)
    assert first_rounds(results) == count
    found = [item for item in items([], results) if item.startswith(f"{count[0]} of the {count[1]} adapters")]
    assert len(found) == len(items([], results)) - ALWAYS == bool(count[0])


CUT = {"examples": 2, "cut": 1, "of_tokens": 40 / 70, "of_transcript": 0.75, "full": 1, "limit": 8}


@pytest.mark.parametrize(
    ("cut", "numbers"),
    [
        (CUT, ["57%", "75%", "1", "2", "1", "50%", "8"]),
        (CUT | {"full": 0}, ["57%", "75%", "1", "2"]),
        (CUT | {"examples": 0}, []),
    ],
    ids=["a full reference", "no full reference", "no examples"],
)
def test_truncation_is_one_sentence(cut: dict[str, Any], numbers: list[str]) -> None:
    """The share of tokens read, of an average transcript, the cut examples, and the references at the limit."""
    assert re.findall(r"\d+%?", truncation(cut)) == numbers
