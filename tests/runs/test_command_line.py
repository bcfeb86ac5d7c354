"""The command line: what a person reads when a command ends early."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest

from pipeline import __main__ as command_line
from pipeline.errors import QuorumError


def test_after_ctrl_c_the_same_command_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.workspace.mend.mend", interrupted)
    monkeypatch.setattr(sys, "argv", ["quorum", "mend"])
    with pytest.raises(SystemExit) as ended:
        command_line.cli()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted: finished parts stay; run the same command again to go on\n"


def test_an_error_is_one_line_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> NoReturn:
        raise QuorumError("a\x1b[2J.vtt:\n  is empty")

    monkeypatch.setattr("pipeline.workspace.mend.mend", fails)
    monkeypatch.setattr(sys, "argv", ["quorum", "mend"])
    with pytest.raises(SystemExit, match="1"):
        command_line.cli()
    assert capsys.readouterr().err == "error: a\\x1b[2J.vtt: is empty\n"
