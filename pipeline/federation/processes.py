"""Run a site's long-lived processes, restart those that die, and stop them together."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.workspace.files import write_text
from pipeline.workspace.progress import say

PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a restart. Each death soon after a restart moves on to the next pause, and the last one repeats."""
SETTLED = 60.0
"""Seconds after which a process counts as stable: its next death starts at the first pause again."""
GRACE = 10.0  # seconds between SIGTERM and SIGKILL


@dataclass(frozen=True)
class Program:
    """One process of a site. Its output goes to NAME.log, its process id to NAME.pid."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Supervisor:
    """Runs programs and restarts them until it is closed. A context manager.

    `state`: the folder of logs and process ids.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._closing, self._spawning = threading.Event(), threading.Lock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Supervisor:
        self._state.mkdir(parents=True, exist_ok=True)
        return self

    def start(self, program: Program) -> None:
        """Start a program and watch it. Raises QuorumError if the program cannot be started."""
        self._spawn(program)
        thread = threading.Thread(target=self._watch, args=(program,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def __exit__(self, *_: object) -> None:
        """Stop all programs, the last started first. Kill those that do not stop in time."""
        with self._spawning:  # from here on nothing starts
            self._closing.set()
        for name, process in reversed(list(self._running.items())):
            _signal(process, signal.SIGTERM)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()
            _signal(process, signal.SIGKILL)  # children that outlived it
            (self._state / f"{name}.pid").unlink(missing_ok=True)
        for thread in self._threads:
            thread.join()

    def _spawn(self, program: Program) -> None:
        """Start a program in a session that its children share, so that a signal reaches them all."""
        with (self._state / f"{program.name}.log").open("ab") as log:
            try:
                process = subprocess.Popen(
                    program.command,
                    env={**os.environ, **program.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                problem = f"{program.command[0]}: could not be started ({error.strerror})"
                raise QuorumError(f"{problem}; install it, see docs/operating.md") from None
        self._running[program.name] = process
        write_text(self._state / f"{program.name}.pid", f"{process.pid}\n")

    def _watch(self, program: Program) -> None:
        """Restart a program whenever it dies."""
        deaths = 0
        while not self._closing.is_set():
            began = time.monotonic()
            code = self._running[program.name].wait()
            if self._closing.is_set():
                return
            _signal(self._running[program.name], signal.SIGKILL)  # children that outlived it
            deaths = 0 if time.monotonic() - began > SETTLED else deaths
            pause = PAUSES[min(deaths, len(PAUSES) - 1)]
            deaths += 1
            say(f"{program.name}: ended with {code}; is started again in {pause:g} s; see {program.name}.log")
            self._closing.wait(pause)
            with self._spawning:
                if self._closing.is_set():
                    return
                try:
                    self._spawn(program)
                except (OSError, QuorumError) as error:  # for example, the disk is full
                    _signal(self._running[program.name], signal.SIGKILL)
                    say(f"{program.name}: could not be started ({error})")


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a process and all its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
