"""The command line: what a person reads when a command ends early."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest

from pipeline import __main__ as command_line


def test_ctrl_c_says_that_nothing_is_lost(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.workspace.mend.mend", interrupted)
    monkeypatch.setattr(sys, "argv", ["quorum", "mend"])
    with pytest.raises(SystemExit) as ended:
        command_line.cli()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted; the same command goes on where it stopped\n"
