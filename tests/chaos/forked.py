"""Children of this process, which has imported torch and the pipeline once for all of them: a stage in its own time."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import NamedTuple

LONGEST_SECONDS = 180


class Ended(NamedTuple):
    """How a child ended: its exit status, which is the signal's number below zero where one killed it; what it said."""

    status: int
    said: str


def forked(work: Callable[[], object]) -> Ended:
    """Do something in a child, and wait for its end; an exception is printed, and is status 1."""
    with tempfile.TemporaryFile() as said:
        gc.freeze()  # what is here already is no child's to collect
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _live(work, said.fileno())
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return Ended(os.waitstatus_to_exitcode(status), said.read().decode("utf-8", "replace"))


def _live(work: Callable[[], object], told: int) -> None:
    """All of a child's life."""
    status = 1
    try:
        os.dup2(told, 1)
        os.dup2(told, 2)
        sys.stdout, sys.stderr = (
            os.fdopen(1, "w", buffering=1, closefd=False),
            os.fdopen(2, "w", buffering=1, closefd=False),
        )
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LONGEST_SECONDS)
        work()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # nothing of the parent's is cleaned up here


def killed() -> None:
    """As by kill -9, now."""
    os.kill(os.getpid(), signal.SIGKILL)
