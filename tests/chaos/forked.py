"""Run work in a child of this process, which has already imported torch and the pipeline."""

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
    """A child's end: its exit status, or minus the signal that killed it; and its output."""

    status: int
    output: str


def forked(work: Callable[[], object]) -> Ended:
    """Run work in a child and wait for its end. An exception is printed, and is status 1."""
    with tempfile.TemporaryFile() as output:
        gc.freeze()  # the child must not collect the parent's objects
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _run(work, output.fileno())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return Ended(os.waitstatus_to_exitcode(status), output.read().decode("utf-8", "replace"))


def _run(work: Callable[[], object], output: int) -> None:
    """Run work in the child, then end it without the parent's clean-up."""
    status = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = (os.fdopen(handle, "w", buffering=1, closefd=False) for handle in (1, 2))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LONGEST_SECONDS)
        work()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def kill() -> None:
    """Kill this process, as kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)
