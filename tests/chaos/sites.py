"""A federation's sites as operators run them: a folder each, the project's own commands, Flower and nginx."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil
import yaml
from safetensors.numpy import load_file
from workspaces import ROOT

from pipeline.federation.loopback import site_environment
from pipeline.federation.site import STATE
from pipeline.workspace.tables import read_table

HOOKS = Path(__file__).with_name("hooks")
SELECT = "fedselectkd"
"""The run that most tests train."""
SERVER = "server"
PORT, INNER = 21443, 21000
NODES = {"University": 21101, "Council": 21102, "Company": 21103}
"""Organisation -> the port of its SuperNode, on loopback."""
TRAINED_SECONDS = 240.0


def wait_until(holds: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: it does not hold in time; the message names `what`.
    """
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"{what}: not within {seconds:g} s"
        time.sleep(0.05)


def is_running(process: psutil.Process) -> bool:
    """Whether a process exists and is no zombie."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


class Site:
    """One site, started and killed by a test. Its own log is site.log.

    Args:
        folder: its working folder, named after the organisation, or "server".
    """

    process: subprocess.Popen[bytes]

    def __init__(self, folder: Path) -> None:
        self.folder, self.name, self._chaos = folder, folder.name, folder / "chaos"
        self._chaos.mkdir(exist_ok=True)

    def start(self) -> None:
        with (self.folder / "site.log").open("ab") as log:
            self.process = self._command(SERVER if self.name == SERVER else "node", log)

    def plan(self, at: str, round_: int, does: str = "wait") -> None:
        """Plan a fault inside the site's own process; see `hooks/sitecustomize.py`."""
        fault = {"at": at, "round": round_, "does": does}
        (self._chaos / "planned.json").write_text(json.dumps(fault), encoding="utf-8")

    def wait_until_met(self) -> None:
        wait_until((self._chaos / "met.json").is_file, TRAINED_SECONDS, f"{self.name}: the planned moment")

    def go_on(self) -> None:
        (self._chaos / "met.json").unlink(missing_ok=True)

    @property
    def trainings(self) -> list[int]:
        """The round of every training that has begun here."""
        path = self._chaos / "trainings.txt"
        return [int(line) for line in path.read_text(encoding="utf-8").split()] if path.is_file() else []

    def log(self, program: str = "") -> str:
        """The log of the site's own process, or of one of its programs."""
        path = self.folder / (STATE / f"{program}.log" if program else "site.log")
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def set(self, **changes: Any) -> None:
        """Change keys of its federation.yaml."""
        path = self.folder / "federation.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")

    def pid(self, program: str) -> int:
        return int((self.folder / STATE / f"{program}.pid").read_text(encoding="utf-8"))

    def kill_itself(self) -> None:
        """Kill the site's own process alone, as the system does when memory runs out."""
        self.process.kill()
        self.process.wait()

    def kill(self) -> None:
        """Kill the site's own process and all that it started, as a power cut does."""
        if not hasattr(self, "process") or self.process.poll() is not None:
            return
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.kill_itself()
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        wait_until(lambda: not any(map(is_running, family)), 10, f"{self.name}: the end of its processes")

    def stop(self) -> None:
        """Run `federation stop`; a planned fault no longer waits."""
        self.go_on()
        self._command("stop", subprocess.DEVNULL).wait()
        self.process.wait(30)

    def _command(self, name: str, output: IO[bytes] | int) -> subprocess.Popen[bytes]:
        """Start a federation command in the site's folder, with the hooks for planned faults."""
        chaos = {"PYTHONPATH": f"{ROOT}{os.pathsep}{HOOKS}", "QUORUM_CHAOS": str(self._chaos)}
        command = [sys.executable, "-m", "pipeline", "federation", name]
        environment = site_environment() | chaos
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT)


class Federation:
    """A server and three organisations on this machine, which train one run."""

    def __init__(self, home: Path, run: str) -> None:
        self.run = run
        self.sites = {name: Site(home / name) for name in (SERVER, *NODES)}
        self.server, self.university = self.sites[SERVER], self.sites["University"]
        for site in self.sites.values():
            site.set(run=run)

    def start(self) -> None:
        for site in self.sites.values():
            site.start()

    def outcome(self) -> dict[str, Any]:
        """What the training leaves at all sites, when it has ended; see `outcome_of`.

        Raises:
            AssertionError: it fails.
            TimeoutExpired: it does not end in time.
        """
        assert self.server.process.wait(TRAINED_SECONDS) == 0, self.server.log()[-600:]
        return outcome_of({name: site.folder for name, site in self.sites.items()}, self.run)

    def close(self) -> None:
        """Kill what is left of all sites."""
        for site in self.sites.values():
            site.kill()
            for number in (site.folder / STATE).glob("*.pid"):
                with suppress(ProcessLookupError, ValueError):
                    os.killpg(int(number.read_text(encoding="utf-8")), signal.SIGKILL)

    def trained_again(self) -> dict[str, int]:
        """Organisation -> how many trainings it began more than once."""
        again = {name: len(site.trainings) - len(set(site.trainings)) for name, site in self.sites.items()}
        return {name: count for name, count in again.items() if count}

    def events(self) -> list[tuple[str, ...]]:
        """(round, client, kind, why) of every event that the server wrote."""
        rows = read_table(self.server.folder / results_of(self.run) / "events.csv")
        return [(row["round"], row["client"], row["kind"], row["why"]) for row in rows]


def results_of(run: str) -> Path:
    return Path(f"models/{run}/1")


def outcome_of(folders: dict[str, Path], run: str) -> dict[str, Any]:
    """The tensors of every site's adapter, bit by bit, and the history without its seconds.

    Args:
        folders: the server, and each organisation -> where its results are.
    """
    found: dict[str, Any] = {}
    for name, folder in folders.items():
        adapter = load_file(folder / results_of(run) / f"adapters/{name}.safetensors")
        found[name] = {key: array.tobytes() for key, array in adapter.items()}
    rows = read_table(folders[SERVER] / results_of(run) / "history.csv")
    return found | {"history": [{key: value for key, value in row.items() if key != "seconds"} for row in rows]}
