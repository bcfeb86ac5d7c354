"""Run work in a child of this process, which has already imported torch and the pipeline."""

import gc
import os
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from typing import NamedTuple

LONGEST_SECONDS = 180


class Ended(NamedTuple):
    """A child's end: its exit status, or minus the signal that killed it; and its output."""

    status: int | None
    output: str


def forked(work: Callable[[], object]) -> Ended:
    """Run work in a child and wait for its end. An exception is printed, and is status 1."""
    with tempfile.TemporaryFile() as output:

        def child() -> None:
            for handle in (1, 2):
                os.dup2(output.fileno(), handle)
            sys.stdout, sys.stderr = (os.fdopen(handle, "w", buffering=1, closefd=False) for handle in (1, 2))
            work()

        gc.freeze()  # the child must not collect the parent's objects
        process = get_context("fork").Process(target=child)
        process.start()
        process.join(LONGEST_SECONDS)
        process.terminate()
        process.join()
        output.seek(0)
        return Ended(process.exitcode, output.read().decode("utf-8", "replace"))
