"""Where Flower is installed, and running one side of a comparison in a process of its own.

Flower's pins (protobuf, typer, rich, …) contradict those of MLflow and DVC, so it lives in `.venv-flower`, which finds
torch and transformers in `.venv`: both sides run the same build of either.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.comparison import THEIRS
from pipeline.errors import QuorumError
from pipeline.workspace import layout

PYTHON = Path(".venv-flower/bin/python")
MISSING = "Flower is not installed; `make bench` installs it"


def installed() -> bool:
    return (layout.home() / PYTHON).is_file()


def in_a_process(module: str, side: str, *arguments: str) -> str:
    """What `python -m module side …` prints, by Flower's Python for the other side.

    Raises:
        QuorumError: it failed; with the end of what it said.
    """
    python = str(layout.home() / PYTHON) if side == THEIRS else sys.executable
    # Ray's workers look for this package there, and must not phone home.
    told = {"PYTHONPATH": str(layout.home()), "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [python, "-m", module, side, *arguments], check=False, capture_output=True, text=True, env=os.environ | told
    )
    if done.returncode:
        raise QuorumError(f"{module} {side}: failed: {' '.join(done.stderr.split())[-600:]}")
    return done.stdout
