"""Sites of a federation as their operators have them: a folder each, the project's own commands, Flower and nginx."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import yaml

ROOT = Path(__file__).parents[2]
HOOKS = Path(__file__).with_name("hooks")
SELECT = "fedselectkd"
"""The run that is trained where a test names none."""
ORGANISATIONS = ("University", "Council", "Company")
SERVER = "server"
PORT, INNER = 21443, 21000
NODES = {name: 21101 + place for place, name in enumerate(ORGANISATIONS)}
"""Ports of SuperNodes, on loopback."""
TRAINED_SECONDS = 240.0
STATE = Path("federation/state")


def wait_until(holds: Callable[[], object], seconds: float, what: str) -> float:
    """Seconds until it held.

    Raises:
        AssertionError: it does not in time; `what` says what was waited for.
    """
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, f"{what}: not within {seconds:g} s"
        time.sleep(0.05)
    return time.monotonic() - began


def lives(process: psutil.Process) -> bool:
    """Whether it is there, and not one that has ended and is only not taken leave of."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Site:
    """One site, which is started, killed and asked about. Its own log is site.log.

    Args:
        folder: its working folder; the name is the organisation's, or the server's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self._chaos = folder / "chaos"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._chaos.mkdir(exist_ok=True)
        command = self._command(SERVER if self.name == SERVER else "node")
        with (self.folder / "site.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, env=self._environment(), stdout=log, stderr=subprocess.STDOUT
            )

    def plan(self, at: str, round_: int, does: str = "wait") -> None:
        """A fault inside the site's own process; see `hooks/sitecustomize.py`."""
        self._chaos.mkdir(exist_ok=True)
        fault = {"at": at, "round": round_, "does": does}
        (self._chaos / "planned.json").write_text(json.dumps(fault), encoding="utf-8")

    def wait_until_met(self, seconds: float = TRAINED_SECONDS) -> None:
        wait_until((self._chaos / "met.json").is_file, seconds, f"{self.name}: the planned moment")

    def go_on(self) -> None:
        (self._chaos / "met.json").unlink()

    @property
    def trainings(self) -> list[int]:
        """The rounds of all trainings that have begun here."""
        path = self._chaos / "trainings.txt"
        return [int(line) for line in path.read_text(encoding="utf-8").split()] if path.is_file() else []

    @property
    def code(self) -> int | None:
        """How the site's own process has ended; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def wait(self, seconds: float) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def log(self, program: str = "") -> str:
        """Of the site's own process, or of a program of its."""
        path = self.folder / (STATE / f"{program}.log" if program else "site.log")
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def set(self, **changes: Any) -> None:
        """Keys of its federation.yaml."""
        path = self.folder / "federation.yaml"
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
        path.write_text(yaml.safe_dump(told | changes), encoding="utf-8")

    def number(self, program: str) -> int:
        """The process of a program of the site's."""
        return int((self.folder / STATE / f"{program}.pid").read_text(encoding="utf-8"))

    def kill_program(self, program: str) -> None:
        os.kill(self.number(program), signal.SIGKILL)

    def kill_itself(self) -> None:
        """The site's own process alone, as where memory runs out."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        """The site's own process, so that nothing is started again, and all that it has started: the power is cut."""
        if self._process is None or self._process.poll() is not None:
            return
        family = psutil.Process(self._process.pid).children(recursive=True)
        self.kill_itself()
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        wait_until(lambda: not any(map(lives, family)), 10, f"{self.name}: the end of its processes")

    def stop(self) -> None:
        """As its operator ends it; what is planned is not waited for."""
        (self._chaos / "met.json").unlink(missing_ok=True)
        if self._process is not None:
            subprocess.run(self._command("stop"), cwd=self.folder, env=self._environment(), capture_output=True)
            self._process.wait(30)

    def _command(self, name: str) -> list[str]:
        return [sys.executable, "-m", "pipeline", "federation", name]

    def _environment(self) -> Mapping[str, str]:
        """A site knows nothing of the repository but its code."""
        kept = {name: value for name, value in os.environ.items() if name not in ("DVC_ROOT", "QUORUM_BASE")}
        chaos = {"PYTHONPATH": f"{ROOT}{os.pathsep}{HOOKS}", "QUORUM_CHAOS": str(self._chaos)}
        return {**kept, **chaos, "OMP_NUM_THREADS": "1", "QUORUM_MIRROR": ""}


class Federation:
    """A server and three organisations, all on this machine."""

    def __init__(self, home: Path, run: str = SELECT) -> None:
        self.server = Site(home / SERVER)
        self.nodes = {name: Site(home / name) for name in ORGANISATIONS}
        self.run = run
        for site in (self.server, *self.nodes.values()):
            site.set(run=run)

    def start(self) -> None:
        for site in (self.server, *self.nodes.values()):
            site.start()

    def wait_until_trained(self) -> None:
        """
        Raises:
            AssertionError: the server ends badly, or not in time.
        """
        code = self.server.wait(TRAINED_SECONDS)
        assert code == 0, self.server.log()[-600:]

    def close(self) -> None:
        """Whatever is left of all sites ends."""
        for site in (*self.nodes.values(), self.server):
            site.kill()
            for number in (site.folder / STATE).glob("*.pid"):
                with suppress(ProcessLookupError, ValueError):
                    os.killpg(int(number.read_text(encoding="utf-8")), signal.SIGKILL)

    def trained_again(self) -> dict[str, int]:
        """Trainings that were begun more than once in a round, by organisation."""
        again = {name: len(site.trainings) - len(set(site.trainings)) for name, site in self.nodes.items()}
        return {name: count for name, count in again.items() if count}

    def events(self) -> list[tuple[str, ...]]:
        """What went wrong and what was done, as the server has written it down: round, client, kind and why."""
        return [(row["round"], row["client"], row["kind"], row["why"]) for row in events(self.server.folder, self.run)]

    def outcome(self) -> dict[str, Any]:
        """What a training leaves: the server's adapter, every organisation's own, and the history."""
        found: dict[str, Any] = {SERVER: tensors(self.server.folder, self.run, SERVER)}
        for name, site in self.nodes.items():
            found[name] = tensors(site.folder, self.run, name)
        return found | {"history": rounds(self.server.folder, self.run)}


def results_of(run: str) -> Path:
    return Path(f"models/main/{run}-1")


def tensors(folder: Path, run: str, whose: str) -> dict[str, bytes]:
    """A model's tensors, bit by bit."""
    from safetensors.numpy import load_file

    path = folder / results_of(run) / f"adapters/{whose}.safetensors"
    return {name: array.tobytes() for name, array in load_file(path).items()}


def events(folder: Path, run: str) -> list[dict[str, str]]:
    return table(folder / results_of(run) / "events.csv")


def rounds(folder: Path, run: str) -> list[dict[str, str]]:
    """The rows of a run's history, but for how long they took."""
    rows = table(folder / results_of(run) / "history.csv")
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))
