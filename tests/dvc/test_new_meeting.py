"""A meeting of one's own, summarized with a trained client's adapter."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Workspace

from pipeline.errors import QuorumError
from pipeline.runs.summarize import summarize_file

QUERY = "What about the budget?"


@pytest.fixture
def meeting(built: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty turns, of which a few fit; where the trained runs are."""
    path = tmp_path / "meeting.txt"
    path.write_text("".join(f"Ann: We talk about the budget, point {i}.\n" for i in range(40)), encoding="utf-8")
    monkeypatch.chdir(built.folder)
    return path


def test_what_does_not_fit_is_left_out_and_told(meeting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summarize_file(meeting, run="fedavg", client="Product", query=QUERY, turns=None)
    assert "of 40 turns left out" in capsys.readouterr().err


def test_turns_that_were_chosen_are_read_and_no_others(meeting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = summarize_file(meeting, run="fedavg-1", client="Product", query=QUERY, turns="1-2")
    assert capsys.readouterr().err == ""
    meeting.write_text("".join(meeting.read_text(encoding="utf-8").splitlines(keepends=True)[:2]), encoding="utf-8")
    assert summarize_file(meeting, run="fedavg-1", client="Product", query=QUERY, turns=None) == chosen


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"run": "nope"}, "--run nope: no such run; there are zeroshot, fedavg, "),
        ({"run": "more/scaffold-1"}, "--run more/scaffold-1: writes no summaries"),
        ({"client": "Mars"}, "--client Mars: run main/fedavg-1 has no such client; it has Academic, "),
        ({"query": " "}, "--query: is empty"),
        ({"turns": "9"}, "--turns 9: give A-B with 1 <= A <= B <= 40"),
    ],
)
def test_what_cannot_be_summarized_is_one_line(meeting: Path, wrong: dict[str, str], message: str) -> None:
    asked: dict[str, str | None] = {"run": "fedavg", "client": "Product", "query": QUERY, "turns": None}
    with pytest.raises(QuorumError) as caught:
        summarize_file(meeting, **asked | wrong)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)
