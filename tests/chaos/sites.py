"""A federation's sites as operators run them: a folder each, the project's own commands, Flower and nginx.

And the same trainings without any fault, simulated in one process.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil
import yaml
from labelled import EXTRACTED, write_documents
from private_meetings import write_meetings
from safetensors.numpy import load_file
from workspaces import ROOT, Workspace

from pipeline.federation import site_commands
from pipeline.federation.flower.commands import app_digest
from pipeline.federation.loopback import ORGANISATIONS as DOMAINS
from pipeline.federation.loopback import SHARED, exchange_keys, site_environment
from pipeline.federation.node import open_node
from pipeline.federation.site import SITE, STATE, NodeSite, read_site
from pipeline.stages import backbone, plan
from pipeline.workspace import layout
from pipeline.workspace.tables import read_table
from pipeline.workspace.tracking import Store

HOOKS = Path(__file__).with_name("hooks")
SELECT = "fedselectkd"
"""The run that most tests train."""
SERVER = "server"
PORT, INNER = 21443, 21000
NODES = {"University": 21101, "Council": 21102, "Company": 21103}
"""Organisation -> the port of its SuperNode, on loopback."""
TRAINED_SECONDS = 240.0


def wait_until(holds: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until a condition holds, or fail with the name of what does not in time."""
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
    """One site, started and killed by a test, in a folder named after the organisation, or `server`."""

    process: subprocess.Popen[bytes]

    def __init__(self, folder: Path) -> None:
        self.folder, self.name, self._chaos = folder, folder.name, folder / "chaos"
        self._chaos.mkdir(exist_ok=True)

    def start(self) -> None:
        with (self.folder / "site.log").open("ab") as log:
            self.process = self._command(SERVER if self.name == SERVER else "node", log)

    def plan(self, at: str, does: str = "wait") -> None:
        """Plan a fault in the site's own process in round 2; see `hooks/sitecustomize.py`."""
        (self._chaos / "planned").write_text(f"{at} {does}", encoding="utf-8")

    def wait_until_met(self) -> None:
        wait_until((self._chaos / "met").is_file, TRAINED_SECONDS, f"{self.name}: the planned moment")

    def go_on(self) -> None:
        (self._chaos / "met").unlink(missing_ok=True)

    def read(self, path: Path | str) -> str:
        path = self.folder / path
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def log(self, program: str = "") -> str:
        """The log of the site's own process, or of one of its programs."""
        return self.read(STATE / f"{program}.log" if program else "site.log")

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

    def start_until(self, at: str) -> Site:
        """Start all sites; the one that waits: University in its `training`, or the server after a `round`."""
        site = self.university if at == "training" else self.server
        site.plan(at)
        self.start()
        site.wait_until_met()
        return site

    def outcome(self) -> dict[str, Any]:
        """What the training leaves at all sites, when it has ended; see `outcome_of`."""
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
        rounds = {name: site.read("chaos/trainings.txt").split() for name, site in self.sites.items()}
        return {name: again for name, own in rounds.items() if (again := len(own) - len(set(own)))}

    def events(self) -> list[tuple[str, ...]]:
        """(round, client, kind, why) of every event that the server wrote."""
        rows = read_table(self.server.folder / layout.events(f"{self.run}/1"))
        return [(row["round"], row["client"], row["kind"], row["why"]) for row in rows]


def outcome_of(folders: dict[str, Path], run: str) -> dict[str, Any]:
    """The tensors of every site's adapter, bit by bit, and the history without its seconds, from the sites' folders."""
    found: dict[str, Any] = {}
    for name, folder in folders.items():
        adapter = load_file(folder / layout.adapter(f"{run}/1", name))
        found[name] = {key: array.tobytes() for key, array in adapter.items()}
    rows = read_table(folders[SERVER] / layout.history(f"{run}/1"))
    return found | {"history": [{key: value for key, value in row.items() if key != "seconds"} for row in rows]}


MEETINGS = {"train": 3, "val": 1, "test": 1}
"""Meetings of an organisation in each split."""
SMALL = {"rounds": 3, "source_tokens": 300, "target_tokens": 60, "max_tokens": 8, "device": "cpu", "sections": {}}
RUNS: dict[str, dict[str, Any]] = {
    SELECT: {"method": "AdaFedSelectKD", "local_start": "own"},
    "selectkd-server": {"method": "AdaFedSelectKD", "local_start": "server", "clients_per_round": 2},
    "fedkd": {"method": "AdaFedKD", "local_start": "server"},
    "fedavg": {"method": "AdaFedAvg", "clients_per_round": 2},
    "strict": {"method": "AdaFedAvg", "tolerance": {}},
    "fedprox": {"method": "AdaFedProx", "mu": 0.1},
    "scaffold": {"method": "SCAFFOLD", "clients_per_round": 2},
    "ditto": {"method": "Ditto", "mu": 0.1},
    "fedbuff": {"method": "FedBuff", "buffer": 2},
    "extract": {"method": "AdaFedAvg", "setting": "documents"},
}
"""The runs in every site's params.yaml."""


def prepare_sites(home: Path) -> None:
    """Prepare four sites that have never been started."""
    for name in (SERVER, *NODES):
        _write_folder(home / name, [] if name == SERVER else [name])
        own: dict[str, Any] = {"kind": "server", "inner_port": INNER, "organisations": list(NODES)}
        if name != SERVER:
            own = {"kind": "node", "inner_port": NODES[name], "organisation": name}
        common = {"run": SELECT, "seed": 1, "host": "127.0.0.1", "port": PORT}
        (home / name / SITE).write_text(yaml.safe_dump(common | own), encoding="utf-8")
        with Workspace(home / name).entered():
            site_commands.certificates()
            site = read_site()
            if isinstance(site, NodeSite):
                open_node(site)
            else:
                plan.run()
                backbone.run("tiny-llama")
                Store()  # creating its tables takes seconds
                digest = app_digest()
    for name in NODES:
        exchange_keys(home / SERVER, home / name, digest)


class Simulation:
    """The same orders, with all organisations in one process and no fault, in a new workspace."""

    def __init__(self, folder: Path) -> None:
        self._workspace = Workspace(folder)
        _write_folder(folder, list(NODES))
        for name in ("checksums", "sample"):
            (folder / "data" / name).symlink_to(ROOT / "data" / name)
        stages = ("plan",), ("backbone", "tiny-llama"), ("ingest", "qmsum"), ("prepare", "qmsum")
        for stage in (*stages, ("partition", "organisations"), ("encode", "organisations")):
            self._workspace.stage(*stage)

    def outcome(self, run: str) -> dict[str, Any]:
        """Train a run unless it is trained; see `outcome_of`."""
        self._workspace.stage("train", run)
        return outcome_of(dict.fromkeys((SERVER, *NODES), self._workspace.folder), run)


def _write_folder(folder: Path, organisations: Sequence[str]) -> None:
    """params.yaml, and the meetings of some organisations."""
    folder.mkdir(parents=True)
    runs = {name: {"setting": "organisations"} | own for name, own in RUNS.items()}
    backbone = {"backbones": ["tiny-llama", "tiny-bert"], "backbone": "tiny-llama"}
    params = yaml.safe_load(SHARED.read_text()) | backbone | SMALL | {"runs": runs}
    params["sources"].append("documents")
    params["data"]["documents"] = EXTRACTED | {"source": "documents", "file": "data/own/documents"}
    params["settings"]["documents"] = {"data": "documents", "kind": "natural"}
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    for name in organisations:
        write_meetings(folder / "data/own" / name, DOMAINS[name], MEETINGS)
        write_documents(folder / "data/own" / name, name)
