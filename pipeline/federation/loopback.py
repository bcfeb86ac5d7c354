"""`make federation`: a server and three organisations on this machine, each with its own folder and processes."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import yaml

from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.qmsum import parse_meeting
from pipeline.corpora.sources import choose, fetch
from pipeline.errors import QuorumError
from pipeline.federation.certificates import AUTHORITY
from pipeline.federation.flower.commands import app_digest
from pipeline.federation.site import ALLOWED, KEYS, SITE
from pipeline.workspace import layout
from pipeline.workspace.files import write_text
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json

ORGANISATIONS = {"University": "Academic", "Council": "Committee", "Company": "Product"}
"""Organisation -> the domain of QMSum whose meetings it gets."""
LEAST = {"train": 24, "val": 8, "test": 1}
"""The least number of queries of an organisation in each split, on a machine that is fast enough."""
SHARED = Path(__file__).with_suffix(".yaml")  # params.yaml of all sites
RUN, SEED = "fedselectkd", 1
PIPELINE = (sys.executable, "-m", "pipeline")
MEASURE = "from pipeline.federation import loopback; print(loopback.first_step())"
PORT, INNER, FIRST_NODE = 19443, 19000, 19100
FAST_SECONDS = 5.0  # a longer first step makes the organisations smaller, in proportion
QUIET_SECONDS, WORKED_SECONDS = 300.0, 3.0
"""A demonstration ends if all sites together compute for fewer than 3 s in 5 minutes."""


def demonstrate() -> None:
    """Set up four sites, train AdaFedSelectKD over them, and summarize a meeting with one organisation's adapter.

    It continues what an earlier call has begun.

    Raises QuorumError if a site ends before the training does, with the last lines of its log, or if all are idle.
    """
    began = time.monotonic()
    home = layout.work() / "federation-loopback"
    _lay_out(home)
    with _running(home, [*ORGANISATIONS, "server"]) as sites:
        _wait(home, sites)
    say(f"federation: trained in {time.monotonic() - began:.0f} s, all included")
    for name in ORGANISATIONS:
        say(f"federation: {name}'s adapter is on its own disk: {home / name / 'models' / RUN / str(SEED)}")
    _summarize(home / "University")
    say(f"federation: the run in MLflow: make ui STORE={(home / 'server').relative_to(Path.cwd())}")


def _lay_out(home: Path) -> None:
    """Write params, meetings, keys and certificates, and stop what a killed call has left running."""
    raw = home / "corpus"
    if not raw.is_dir():
        fetch("qmsum", choose("qmsum", "auto"), raw)
    common = {"run": RUN, "seed": SEED, "host": "127.0.0.1", "port": PORT}
    for place, name in enumerate(["server", *ORGANISATIONS]):
        folder = home / name
        write_text(folder / layout.PARAMS, SHARED.read_text(encoding="utf-8"))
        own: Json = {"kind": "node", "organisation": name, "inner_port": FIRST_NODE + place, "scores": "means"}
        if name == "server":
            own = {"kind": "server", "inner_port": INNER, "organisations": list(ORGANISATIONS)}
        write_text(folder / SITE, yaml.safe_dump(common | own))
        if layout.BACKBONES.is_dir() and not (folder / layout.BACKBONES).is_dir():
            shutil.copytree(layout.BACKBONES, folder / layout.BACKBONES)
        for command in ("stop", "certificates"):
            _command(folder, *PIPELINE, "federation", command)
    size, digest = _size(home), app_digest()
    for name in ORGANISATIONS:
        _give_meetings(raw / ORGANISATIONS[name], home / name / layout.OWN / name, size)
        exchange_keys(home / "server", home / name, digest)


def _size(home: Path) -> float:
    """The share of `LEAST` that an organisation gets, by a first step, which is measured once."""
    path = home / "first-step.txt"
    if not path.is_file():
        write_text(path, _command(home / "server", sys.executable, "-c", MEASURE))
        say(f"federation: a first step takes {float(path.read_text()):.1f} s here")
    return min(1.0, FAST_SECONDS / float(path.read_text()))


def first_step() -> float:
    """The seconds in which this folder's run encodes a query and takes a step on a batch of it."""
    from pipeline.federated.head import backward_through_head
    from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
    from pipeline.federation.data import obtain_backbone
    from pipeline.federation.facts import planned_training
    from pipeline.model.backbone import Backbone, Rendered, targets_of
    from pipeline.runs.learners import initial, model_of
    from pipeline.stages import plan

    plan.run()
    obtain_backbone(layout.run_id(RUN, SEED))
    training, _ = planned_training(layout.run_id(RUN, SEED))
    model, view = model_of(training.learner), training.learner.view
    assert isinstance(model, Backbone)
    adapter = {name: tensor.requires_grad_() for name, tensor in initial(training.learner, model, (), SEED).items()}
    query = Rendered((9,) * view.source_tokens, (9,) * view.target_tokens, view.source_tokens, view.source_tokens)
    began = time.monotonic()
    batch = [model.encode(query, for_generation=False)[0]] * training.batch_size
    backward_through_head(model.head, model.target_hidden(batch, adapter), targets_of(batch), CROSS_ENTROPY)
    return time.monotonic() - began


def exchange_keys(server: Path, node: Path, app: str) -> None:
    """Copy the authority's certificate to a node, its public key to the server, and allow the node an app's sha256.

    Both are given by their folders; the node's is named after the organisation.
    """
    key = KEYS / f"{node.name}.pub"
    write_text(node / AUTHORITY, (server / AUTHORITY).read_text(encoding="utf-8"))
    write_text(server / key, (node / key).read_text(encoding="utf-8"))
    write_text(node / ALLOWED, app + "\n")


def _give_meetings(domain: Path, folder: Path, size: float) -> None:
    """Copy meetings of each split, in a fixed order, until they have this share of enough queries."""
    for split, wanted in LEAST.items():
        paths = {path.name: path for path in (domain / split).glob("*.json")}
        count = 0
        for name in hash_order(list(paths)):
            if count >= wanted * size:
                break
            count += len(parse_meeting(paths[name]).queries)
            target = folder / split / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(paths[name], target)


@contextmanager
def _running(home: Path, names: Sequence[str]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start every site's command, and stop all of them at the end."""
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in names:
            command, folder = [*PIPELINE, "federation", "server" if name == "server" else "node"], home / name
            with (folder / "site.log").open("wb") as log:
                started[name] = subprocess.Popen(command, cwd=folder, env=site_environment(), stdout=log, stderr=log)
        yield started
    finally:
        for name, process in started.items():
            if process.poll() is None:
                _command(home / name, *PIPELINE, "federation", "stop")
            process.wait()


def _wait(home: Path, sites: dict[str, subprocess.Popen[bytes]]) -> None:
    """Wait until the server has finished, and print its log meanwhile."""
    moved, worked, shown = time.monotonic(), 0.0, 0
    while True:
        lines = _log(home, "server").splitlines()
        for line in lines[shown:]:
            say(line)
        shown = len(lines)
        ended = {name: process.returncode for name, process in sites.items() if process.poll() is not None}
        if ended.get("server") == 0:
            return
        for name in ended:
            raise QuorumError(f"federation: {name} has ended: {' '.join(_log(home, name).strip()[-400:].split())}")
        seconds = sum(sum(psutil.Process(one.pid).cpu_times()[:2]) for one in sites.values())
        if seconds >= worked + WORKED_SECONDS:
            moved, worked = time.monotonic(), seconds
        if time.monotonic() > moved + QUIET_SECONDS:
            idle = f"nothing has moved for {QUIET_SECONDS:g} s"
            raise QuorumError(f"federation: {idle}; read {home}/*/site.log, then run again, which continues")
        time.sleep(0.5)


def _log(home: Path, name: str) -> str:
    return (home / name / "site.log").read_text(encoding="utf-8", errors="replace")


def _summarize(folder: Path) -> None:
    """Summarize a test meeting with the organisation's adapter."""
    meeting = min((folder / layout.OWN / folder.name / "test").glob("*.json"))
    say(f"federation: {folder.name} summarizes {meeting.name} with its own adapter:")
    query = ("--query", "Summarize the whole meeting.")
    print(_command(folder, *PIPELINE, "summarize", "--run", RUN, "--client", folder.name, *query, str(meeting)), end="")


def _command(folder: Path, *command: str) -> str:
    """What a command prints in a site's folder."""
    done = subprocess.run(command, cwd=folder, env=site_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise QuorumError(re.sub(r"^error: ", "", done.stderr.strip()[-300:]))
    return done.stdout


def site_environment() -> dict[str, str]:
    """A site's environment: of the repository it has only the code."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("DVC_ROOT", "QUORUM_BASE")}
    code = str(Path(__file__).parents[2])
    return {**inherited, "PYTHONPATH": code, "OMP_NUM_THREADS": "1", "QUORUM_MIRROR": ""}
