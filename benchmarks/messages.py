"""What carrying messages over a deployed Flower costs -> reports/benchmarks/messages.md.

`python -m benchmarks.messages`, after `make setup-flower`, with nginx. A server and three organisations on loopback, in
processes and folders of their own as `make federation` has them. Their clients train nothing: first they send one
number, 20 times; then an adapter of 100 MB, for 20 rounds of federated averaging, which also scores. Not part of
`make bench`: no other tool is compared, and it takes ten minutes.
"""

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import torch
import yaml

from benchmarks.__main__ import OUT, machine
from pipeline.engines.messages import Facts
from pipeline.engines.node import Node
from pipeline.engines.remote import Remote, handshake
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Fit, Sent, Trace
from pipeline.federated.algorithms import fedavg
from pipeline.federated.callbacks import Callback, Stopping
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import Objective
from pipeline.federated.randomness import Randomness
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import STRICT
from pipeline.federated.wire import serialize
from pipeline.federation import site_commands
from pipeline.federation.flower.commands import app_digest
from pipeline.federation.loopback import exchange_keys
from pipeline.federation.node import running_node
from pipeline.federation.server import running_server
from pipeline.federation.site import SITE, STATE, NodeSite, ServerSite, read_site
from pipeline.model.adapter import Adapter
from pipeline.workspace.files import read_json, write_json, write_text
from pipeline.workspace.progress import say

ORGANISATIONS = ("A", "B", "C")
PORT, INNER = 22443, 22000
JOB = "carrying"
TENSOR = 1 << 20
"""Numbers of a tensor: 4 MB."""
MB = 1e6
FACTS = Facts(
    code="", order="", backbone="", packages={}, precision="fp32", threads=1, weight=1.0, train=1, val=1, test=0
)
OUTCOME = Path("outcome.json")
FEDAVG = fedavg.build(fedavg.Hyperparameters())


@dataclass(frozen=True)
class After:
    """A round of large updates: its seconds, and what Flower's processes and files have come to, in MB."""

    round: int
    seconds: float
    superlink: float
    relay: float
    database: float


class Idle:
    """A client whose training adds one to every number; see `ClientData`."""

    examples = 1

    def fit(
        self,
        start: Adapter,
        rng: Randomness,
        objective: Objective = CROSS_ENTROPY,
        *,
        pull: Any = None,
        moments: Adapter | None = None,
    ) -> Fit:
        del rng, objective, pull, moments
        return Fit({name: tensor + 1 for name, tensor in start.items()}, Trace(0.0, 1, 0.0), {})

    def gradient(self, adapter: Adapter) -> Adapter:
        return {name: torch.zeros_like(tensor) for name, tensor in adapter.items()}

    def validation_loss(self, adapter: Adapter) -> float:
        """How far the first number still is from a hundred."""
        return 100.0 - float(next(iter(adapter.values())).flatten()[0])


def adapter_of(megabytes: float) -> Adapter:
    """Zeros; of no size, one number."""
    if not megabytes:
        return {"0000": torch.zeros(1)}
    return {f"{number:04d}": torch.zeros(TENSOR) for number in range(round(megabytes * MB / (4 * TENSOR)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--site", choices=["small", "large"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.site:
        serve_site(0.0 if arguments.site == "small" else arguments.megabytes, arguments.rounds)
        return
    small = federated("small", arguments)
    large = federated("large", arguments)
    about = {
        "day": date.today().isoformat(),
        "machine": machine(),
        "megabytes": arguments.megabytes,
        "small": small,
        "large": large,
    }
    write_json(OUT / "messages.json", about)
    write_text(OUT / "messages.md", markdown(about))
    print(markdown(about))


def federated(size: str, arguments: argparse.Namespace) -> Any:
    """What the server of a federation finds, laid out in a folder that is gone afterwards."""
    say(f"bench: messages, {size}")
    with TemporaryDirectory(prefix="qm") as name:
        home = Path(name)
        lay_out(home)
        told = ("--site", size, "--rounds", str(arguments.rounds), "--megabytes", str(arguments.megabytes))
        with running(home, told) as server:
            if server.wait():
                log = (home / "server" / "site.log").read_text(encoding="utf-8", errors="replace")
                raise QuorumError(f"messages, {size}: the server has failed: {' '.join(log.split())[-600:]}")
        return read_json(home / "server" / OUTCOME)


def lay_out(home: Path) -> None:
    common = {"run": "none", "seed": 1, "host": "127.0.0.1", "port": PORT}
    for place, name in enumerate((*ORGANISATIONS, "server")):
        own: dict[str, Any] = {"kind": "node", "organisation": name, "inner_port": INNER + 1 + place}
        if name == "server":
            own = {"kind": "server", "organisations": list(ORGANISATIONS), "inner_port": INNER}
        write_text(home / name / SITE, yaml.safe_dump(common | own))
        with entered(home / name):
            site_commands.certificates()
    with entered(home / "server"):
        digest = app_digest()
    for name in ORGANISATIONS:
        exchange_keys(home / "server", home / name, digest)


@contextmanager
def running(home: Path, told: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """All sites, and the server's process; all are ended together."""
    paths = {"PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    started: list[tuple[Path, subprocess.Popen[bytes]]] = []
    try:
        for name in (*ORGANISATIONS, "server"):
            with (home / name / "site.log").open("wb") as log:
                command = [sys.executable, "-m", "benchmarks.messages", *told]
                process = subprocess.Popen(
                    command, cwd=home / name, env={**os.environ, **paths}, stdout=log, stderr=subprocess.STDOUT
                )
            started.append((home / name, process))
        yield started[-1][1]
    finally:
        for folder, process in started:
            with entered(folder):
                site_commands.stop()
            process.wait()


@contextmanager
def entered(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def serve_site(megabytes: float, rounds: int) -> None:
    """This folder's site, until it is stopped; a server's, until it has found what it is asked for."""
    site = read_site()
    initial = adapter_of(megabytes)
    with site_commands.running_site():
        if isinstance(site, NodeSite):
            node = Node(
                *(site.organisation, JOB, FEDAVG, Idle(), initial, Path("work")),  # type: ignore[arg-type]
                seed=1,
                facts=FACTS,
                finish=lambda *_: {},
            )
            with running_node(site, node):
                threading.Event().wait()
        assert isinstance(site, ServerSite)
        write_json(OUTCOME, found(site, initial, rounds, large=megabytes > 0))


def found(site: ServerSite, initial: Adapter, rounds: int, *, large: bool) -> Any:
    with running_server(site) as link:
        facts = handshake(link, site.organisations, JOB, FACTS)
        remote = Remote(link, facts, STRICT, job=JOB)
        if not large:
            return questions(remote, site.organisations, serialize(Sent(initial)), rounds)
        watching = Watching()
        begun = initial_progress(FEDAVG, initial, remote)
        run_rounds(FEDAVG, remote, begun, Participation(), [Stopping(rounds, 10**6), watching], seed=1, job=JOB)
        return [asdict(row) for row in watching.rows]


def questions(remote: Remote, names: Sequence[str], body: bytes, rounds: int) -> list[float]:
    """Seconds of each question to all, until the last answer."""
    seconds = []
    for number in range(1, rounds + 1):
        began = time.monotonic()
        remote.request_all(names, "train", number, body)
        seconds.append(time.monotonic() - began)
    return seconds


class Watching(Callback):
    """Looks at Flower's processes and database after every round."""

    def __init__(self) -> None:
        self.rows: list[After] = []
        self._before = time.monotonic()

    def after_round(self, progress: Progress) -> None:
        now = time.monotonic()
        database = sum(path.stat().st_size for path in STATE.glob("superlink.db*")) / MB
        superlink = process_of("superlink")
        relays = [
            one for one in process_of("superexec").children(recursive=True) if "serverapp" in " ".join(one.cmdline())
        ]
        peaks = peak(superlink), max(map(peak, relays))
        self.rows.append(After(progress.round, now - self._before, *peaks, database))
        self._before = now


def process_of(program: str) -> psutil.Process:
    return psutil.Process(int((STATE / f"{program}.pid").read_text(encoding="utf-8")))


def peak(process: psutil.Process) -> float:
    """The most memory that it has held so far, in MB."""
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return float(kilobytes) * 1024 / MB


def markdown(about: dict[str, Any]) -> str:
    small, large = about["small"], [After(**row) for row in about["large"]]
    early, late = large[len(large) // 4], large[-1]
    seconds = [row.seconds for row in large]
    lines = [
        f"Measured on {about['day']}: three organisations and a server on loopback, Flower's own processes, TLS.",
        "",
        "| what | measured |",
        "|---|---|",
        f"| a question to all and their answers, one number each, of {len(small)} | "
        f"median {statistics.median(small):.2f} s, worst {max(small):.2f} s |",
        f"| a round with {about['megabytes']:.0f} MB each way, scoring included, of {len(large)} | "
        f"median {statistics.median(seconds):.1f} s, worst {max(seconds):.1f} s |",
        f"| the SuperLink's largest memory after round {early.round} / {late.round} | "
        f"{early.superlink:.0f} / {late.superlink:.0f} MB |",
        f"| the relay's | {early.relay:.0f} / {late.relay:.0f} MB |",
        f"| the SuperLink's database, journal included, after a round: largest | "
        f"{max(row.database for row in large):.1f} MB |",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
