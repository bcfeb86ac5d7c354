"""Progress in a pipe: one line when the planned number is reached, though more follows."""

import pytest

from pipeline.workspace.progress import progress


def test_work_beyond_its_estimate_prints_no_further_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("train a", 4) as advance:
        for _ in range(5):
            advance(2)
    assert capsys.readouterr().err == "train a: 4/4, 0 s, about 0 s left\n"
