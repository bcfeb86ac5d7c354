"""What the page says first."""

from __future__ import annotations

from typing import Any

from pipeline.evaluation.claims import Claim, Judged, of_other_runs
from pipeline.evaluation.intervals import Interval
from pipeline.report.answer import answer_of, verdict_rows
from pipeline.tasks.task import LOSS, load_task

METRICS = (*load_task("pipeline.tasks.summarize").metrics, LOSS)


def claim(number: int, metric: str, gain: Interval | None, **more: Any) -> Judged:
    asked = Claim(number=number, text="", ours="x", theirs="y", effects={metric: 1.0}, gate=number == 0)
    return Judged(asked, metric, gain, None, more.pop("word", "undecided"), **more)


def answer(*claims: Judged) -> dict[str, Any] | None:
    return answer_of(claims, METRICS)


GAIN = Interval(1.5, 0.5, 2.5, 0.5)


def test_the_answer_is_claim_one_with_the_gate_on_the_same_endpoint() -> None:
    gates = [claim(0, metric, GAIN) for metric in ("loss", "average")]
    found = answer(*gates, claim(1, "average", GAIN, why="not converged: x"), claim(1, "loss", GAIN))
    assert found is not None
    assert (found["first"].gain, found["first"].why, found["gate"]) == (GAIN, "not converged: x", gates[1])
    assert found["endpoint"].name == "average"


def test_an_answer_in_loss_alone_is_told_in_loss() -> None:
    found = answer(claim(1, "average", None), claim(1, "loss", GAIN))
    assert found is not None
    assert found["endpoint"] == LOSS


def test_gates_that_are_shut_are_told_first() -> None:
    """The gate is supported in loss and excluded in ROUGE: there no claim is decided."""
    gates = [claim(0, "average", GAIN, word="excluded"), claim(0, "loss", GAIN, word="supported")]
    found = answer(*gates, claim(1, "average", GAIN))
    assert found is not None
    assert [(metric.name, gate) for metric, gate, _ in found["shut"]] == [("average", gates[0])]


def test_without_a_gate_the_answer_stands_alone() -> None:
    found = answer(claim(1, "average", GAIN))
    assert found is not None
    assert found["gate"] is None


def test_without_claim_ones_runs_there_is_no_answer() -> None:
    assert answer(claim(1, "average", None), claim(2, "average", GAIN)) is None


def test_a_gate_that_is_shut_is_told_before_claim_one_is_run() -> None:
    gate = claim(0, "average", GAIN)
    found = answer(gate, claim(1, "average", None))
    assert found is not None
    assert (found["first"], [one for _, one, _ in found["shut"]]) == (None, [gate])


def test_a_claim_has_a_word_an_endpoint() -> None:
    """Claim 5 is judged in loss alone."""
    claims = [
        claim(1, "average", GAIN, word="excluded"),
        claim(1, "loss", GAIN),
        claim(5, "loss", None, word="not run"),
    ]
    rows = verdict_rows(claims, METRICS)
    assert [[cell and cell["word"] for cell in row["cells"]] for row in rows] == [
        ["excluded", "undecided"],
        [None, "not run"],
    ]


def test_a_gate_on_a_run_that_did_not_converge_is_told_with_one_that_did() -> None:
    """In ROUGE the pooled run has one in its place; in loss nothing was replaced, so that nothing is told twice."""
    usual = [claim(0, "average", GAIN), claim(0, "loss", GAIN)]
    slower = [of_other_runs([usual[0].claim], {"x": "x-slower"})[0], usual[1].claim]
    other = [Judged(asked, one.metric, GAIN, None, "supported") for asked, one in zip(slower, usual, strict=True)]
    found = answer_of(usual, METRICS, other)
    assert found is not None
    assert [(metric.name, elsewhere) for metric, _, elsewhere in found["shut"]] == [
        ("average", other[0]),
        ("loss", None),
    ]


def test_beside_each_verdict_stands_the_one_at_a_rate_that_converges() -> None:
    usual = [claim(1, "average", GAIN), claim(1, "loss", GAIN)]
    other = [claim(1, "average", GAIN, word="supported"), claim(1, "loss", GAIN, word="excluded")]
    (row,) = verdict_rows(usual, METRICS, other)
    assert [cell["word"] for cell in row["cells"]] == ["undecided", "undecided", "supported", "excluded"]
