"""What a reader must know before believing a number, from numbers worked by hand."""

import re
from dataclasses import replace
from typing import Any

import pytest
from made_results import order_of, results_of, round_of, row_of, run_of

from pipeline.evaluation.scores import Scored
from pipeline.report.notes import first_rounds, limits, truncation

CUT = {"examples": 2, "cut": 1, "of_tokens": 40 / 70, "of_transcript": 0.75, "full": 1, "limit": 8}
KD_RUN, OTHER_DATA = run_of("kd"), [row_of("kd-iid", setting="iid")]
FIRST, SECOND = (round_of(n, "A", 1, best=True, figures={"share_distilled": 0.9}) for n in (1, 2))


def items(**parts: Any) -> list[str]:
    """The list's items."""
    return re.findall(r"<li>(.*?)</li>", limits(order_of([]), results_of(**parts)), re.DOTALL)


ALWAYS = len(items())


def test_clients_with_few_test_meetings_are_named() -> None:
    """A has 30 meetings in one setting and two in the other; B nine; C enough."""
    meetings = {("one", "A"): 30, ("one", "B"): 9, ("other", "A"): 2, ("other", "C"): 30}
    tests: dict[str, list[Scored]] = {"one": [], "other": []}
    for (setting, client), count in meetings.items():
        tests[setting] += [Scored("e", client, f"m{n}", 1, {}) for n in range(count)]
    known = {"rows": {setting: [row_of(setting, setting=setting)] for setting in tests}, "scored": tests}
    found = items(**known, histories=dict.fromkeys(tests, ()))
    assert re.findall(r"\w \d+ \(.*\)", "\n".join(found)) == ["A 2 (other); B 9 (one)"]
    tests["one"], tests["other"] = [], [one for one in tests["other"] if one.client == "C"]
    assert len(items(**known, histories=dict.fromkeys(tests, ()))) == ALWAYS


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
def test_adapters_of_the_first_round_are_counted(runs: dict[str, Any], count: tuple[int, int]) -> None:
    """A limit names their number, unless it is 0."""
    rows, histories = ({name: one[part] for name, one in runs.items()} for part in (0, 1))
    known = {"rows": rows, "scored": dict.fromkeys(rows, ()), "histories": histories}
    assert first_rounds(results_of(**known)) == count
    found = [item for item in items(**known) if item.startswith(f"{count[0]} of the {count[1]} adapters")]
    assert len(found) == len(items(**known)) - ALWAYS == bool(count[0])


def test_truncation_is_one_sentence() -> None:
    """The share of tokens read, of an average transcript, the cut examples, and the references at the limit."""
    cuts = CUT, CUT | {"full": 0}, CUT | {"examples": 0}
    found = [" ".join(re.findall(r"\d+%?", truncation(cut))) for cut in cuts]
    assert found == ["57% 75% 1 2 1 50% 8", "57% 75% 1 2", ""]
