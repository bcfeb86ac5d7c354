"""The command line: what a person reads when a command ends early, and what one with nothing to do imports."""

import subprocess
import sys
from unittest.mock import Mock

import pytest
from conftest import ROOT

from pipeline import __main__ as command_line
from pipeline.errors import QuorumError

ENDS = [
    (KeyboardInterrupt(), 130, "interrupted: finished parts stay; run the same command again to go on\n"),
    (QuorumError("a\x1b[2J.vtt:\n  is empty"), 1, "error: a\\x1b[2J.vtt: is empty\n"),
]


@pytest.mark.parametrize(("raised", "code", "line"), ENDS, ids=["ctrl-c", "an error with control characters"])
def test_a_command_that_ends_early_says_why_in_one_line(
    raised: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pipeline.workspace.mend.mend", Mock(side_effect=raised))
    monkeypatch.setattr(sys, "argv", ["quorum", "mend"])
    with pytest.raises(SystemExit) as ended:
        command_line.cli()
    assert (ended.value.code, capsys.readouterr().err) == (code, line)


def test_a_finished_run_loads_no_torch_and_its_twin_no_model() -> None:
    """Their imports take seconds, which a `dvc repro` without a training saves; a twin's models are torch's."""
    loaded = "print({'scipy', 'torch', 'transformers'} & set(sys.modules))"
    code = f"import sys, pipeline.runs.tracking, pipeline.stages.train; {loaded}; import pipeline.runs.export; {loaded}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n{'torch'}\n"
