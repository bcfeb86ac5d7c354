"""Planned faults in a site's own process. Python runs this file at its start if PYTHONPATH has its folder.

QUORUM_CHAOS is a folder. Its file planned, `training` or `round` and `wait` or `raise`, is renamed to met at that time
of round 2, which comes once; a process that waits goes on when met is gone. Every training that begins at a node adds a
line to trainings.txt. A server sends the app in `app`, if there is one.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any


def meet(at: str, round_: int, folder: Path) -> None:
    """Do what is planned for this moment."""
    planned, met = folder / "planned", folder / "met"
    if round_ != 2 or not planned.is_file():
        return
    moment, does = planned.read_text(encoding="utf-8").split()
    if moment == at:
        planned.rename(met)
        if does == "raise":
            raise RuntimeError("a fault that a test has planned")
        while met.is_file():
            time.sleep(0.05)


def at_a_node(folder: Path) -> None:
    """Meet between the first and the second batch of a round's training."""
    from pipeline.federated.local import LocalClientData

    fit, backward = LocalClientData.fit, LocalClientData._backward
    batches: list[Any] = []

    def watched_fit(self: Any, start: Any, rng: Any, *more: Any, **options: Any) -> Any:
        batches[:] = [None, lambda: meet("training", rng.round, folder)]
        with (folder / "trainings.txt").open("a", encoding="utf-8") as lines:
            lines.write(f"{rng.round}\n")
        return fit(self, start, rng, *more, **options)

    def watched(self: Any, *more: Any) -> Any:
        if (before := batches.pop(0) if batches else None) is not None:
            before()
        return backward(self, *more)

    LocalClientData.fit = watched_fit  # type: ignore[method-assign]
    LocalClientData._backward = watched  # type: ignore[method-assign]


def at_the_server(folder: Path) -> None:
    """Meet after a round is written, before the next one begins."""
    from pipeline.federated.callbacks import Checkpointing
    from pipeline.federation.flower import commands

    if (folder / "app").is_dir():
        commands.APP = folder / "app"
    save = Checkpointing.after_round

    def watched(self: Any, progress: Any) -> None:
        save(self, progress)
        meet("round", progress.round, folder)

    Checkpointing.after_round = watched  # type: ignore[method-assign]


if "QUORUM_CHAOS" in os.environ and sys.orig_argv[1:4] == ["-m", "pipeline", "federation"]:
    if sys.orig_argv[4] == "node":
        at_a_node(Path(os.environ["QUORUM_CHAOS"]))
    if sys.orig_argv[4] == "server":
        at_the_server(Path(os.environ["QUORUM_CHAOS"]))
