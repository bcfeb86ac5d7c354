"""Progress of long work: a bar with an estimate on a terminal, plain lines in a pipe."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from pipeline.workspace.words import printable

PLAIN_LINE_SECONDS = 20.0


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield `advance(n)`, to be called when n of `total` units of work are done."""
    if sys.stderr.isatty():
        from rich import progress as rich
        from rich.console import Console

        columns = (*rich.Progress.get_default_columns(), rich.MofNCompleteColumn(), rich.TimeElapsedColumn())
        with rich.Progress(*columns, console=Console(stderr=True)) as bar:
            yield partial(bar.advance, bar.add_task(label, total=total))
    else:
        yield _plain(label, total)


def _plain(label: str, total: int) -> Callable[[int], None]:
    start = last = time.monotonic()
    done = 0

    def advance(n: int = 1) -> None:
        nonlocal done, last
        done += n
        now = time.monotonic()
        if done - n < total <= done or now - last >= PLAIN_LINE_SECONDS:
            last = now
            left = (now - start) / max(done, 1) * max(total - done, 0)
            say(f"{label}: {done}/{total}, {now - start:.0f} s, about {left:.0f} s left")

    return advance


def say(line: str) -> None:
    """Print a line to standard error, with control characters escaped."""
    print(printable(line), file=sys.stderr, flush=True)
