"""`make federation`: a server and three organisations, in processes and folders of their own, on this machine alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.qmsum import parse_meeting
from pipeline.corpora.sources import choose, fetch
from pipeline.errors import QuorumError
from pipeline.federation.certificates import AUTHORITY
from pipeline.federation.flower.commands import app_digest
from pipeline.federation.site import ALLOWED, KEYS, SITE
from pipeline.plan.schema import read_whole
from pipeline.workspace import layout
from pipeline.workspace.files import write_text
from pipeline.workspace.progress import say

ORGANISATIONS = {"University": "Academic", "Council": "Committee", "Company": "Product"}
"""Each has meetings of a domain of QMSum."""
LEAST = {"train": 24, "val": 8, "test": 1}
"""Queries of an organisation in each split, at least."""
RUN, SEED = "fedselectkd", 1
PORT, INNER, FIRST_NODE = 19443, 19000, 19101
PATIENCE_SECONDS = 900.0


def params_of_all(whole: dict[str, Any]) -> dict[str, Any]:
    """What all sites share: the root's knobs, but for a federation of three small organisations."""
    changed = {
        "seeds": [SEED],
        "corpora": ["qmsum"],
        "data_source": "sample",
        "train_fraction": 1.0,
        "validation_examples": 1000,
        "source_tokens": 512,
        "target_tokens": 96,
        "max_tokens": 64,
        "rounds": 4,
        "learning_rate": 0.0002,
        "batch_size": 4,
        "threads": 1,
        "tolerance": {"repeats": 3, "pause": 5},
        "own": {name: {"folder": f"data/own/{name}"} for name in ORGANISATIONS},
        "settings": {"organisations": {"kind": "domains", "clients": [], "own": True}},
        "runs": {RUN: {"method": "AdaFedSelectKD", "setting": "organisations"}},
        "more_runs": {},
        "studies": {"main": [RUN]},
        "tune": {"seed": 1000, "families": {}, "trials": {}},
    }
    return whole | changed


def demonstrate() -> None:
    """Lay out four sites, train AdaFedSelectKD over them, and summarize a meeting with an organisation's own adapter.

    Raises:
        QuorumError: a site ends before the training does; the last lines of its log are told.
    """
    began = time.monotonic()
    home = layout.work() / "federation-loopback"
    _lay_out(home)
    names = [*ORGANISATIONS, "server"]
    with _running(home, names) as sites:
        _wait(home, sites)
    say(f"federation: trained in {time.monotonic() - began:.0f} s, all included")
    for name in ORGANISATIONS:
        say(f"federation: {name}'s adapter is on its own disk: {home / name / 'models/main' / f'{RUN}-{SEED}'}")
    _summarize(home / "University")
    say(f"federation: the run in MLflow: make ui STORE={(home / 'server').relative_to(Path.cwd())}")


def _lay_out(home: Path) -> None:
    """Folders, params, meetings, keys and certificates; what was prepared and encoded before stays."""
    raw = home / "corpus"
    if not raw.is_dir():
        fetch("qmsum", choose("qmsum", "auto"), raw)
    params = yaml.safe_dump(params_of_all(read_whole(layout.PARAMS)), sort_keys=False, allow_unicode=True)
    common = {"run": RUN, "seed": SEED, "host": "127.0.0.1", "port": PORT}
    for place, name in enumerate([*ORGANISATIONS, "server"]):
        folder = home / name
        write_text(folder / layout.PARAMS, params)
        own: dict[str, Any] = {
            "kind": "node",
            "organisation": name,
            "inner_port": FIRST_NODE + place,
            "scores": "means",
        }
        if name == "server":
            own = {"kind": "server", "inner_port": INNER, "organisations": list(ORGANISATIONS)}
        else:
            _give_meetings(raw / ORGANISATIONS[name], folder / layout.OWN / name)
        write_text(folder / SITE, yaml.safe_dump(common | own))
        _give_backbone(folder)
        shutil.rmtree(folder / "federation/state", ignore_errors=True)
        shutil.rmtree(folder / "work/checkpoints", ignore_errors=True)
        shutil.rmtree(folder / "work/federation", ignore_errors=True)
        _command(folder, "certificates")
    digest = app_digest()
    for name in ORGANISATIONS:
        introduce(home / "server", home / name, digest)


def introduce(server: Path, node: Path, app: str) -> None:
    """What the operator and the organisation that the node's folder is called after give each other.

    Args:
        app: the sha256 that the node allows.
    """
    key = KEYS / f"{node.name}.pub"
    write_text(node / AUTHORITY, (server / AUTHORITY).read_text(encoding="utf-8"))
    write_text(server / key, (node / key).read_text(encoding="utf-8"))
    write_text(node / ALLOWED, app + "\n")


def _give_meetings(domain: Path, folder: Path) -> None:
    """As many meetings of each split as have the queries that are wanted."""
    for split, wanted in LEAST.items():
        paths = {path.name: path for path in (domain / split).glob("*.json")}
        count = 0
        for name in hash_order(list(paths)):
            if count >= wanted:
                break
            count += len(parse_meeting(paths[name]).queries)
            target = folder / split / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(paths[name], target)


def _give_backbone(folder: Path) -> None:
    """A copy of its own; where the root has none yet, each site obtains it itself."""
    if layout.BACKBONE.is_dir() and not (folder / layout.BACKBONE).is_dir():
        shutil.copytree(layout.BACKBONE, folder / layout.BACKBONE)


@contextmanager
def _running(home: Path, names: Sequence[str]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Every site's own command; all are ended together."""
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in names:
            with (home / name / "site.log").open("wb") as log:
                kind = "server" if name == "server" else "node"
                command = [sys.executable, "-m", "pipeline", "federation", kind]
                started[name] = subprocess.Popen(
                    command, cwd=home / name, env=_environment(), stdout=log, stderr=subprocess.STDOUT
                )
        yield started
    finally:
        for name, process in started.items():
            if process.poll() is None:
                _command(home / name, "stop")
        for process in started.values():
            process.wait()


def _wait(home: Path, sites: dict[str, subprocess.Popen[bytes]]) -> None:
    """Until the server has ended well; its words are shown as they come."""
    until, shown = time.monotonic() + PATIENCE_SECONDS, 0
    while True:
        lines = (home / "server" / "site.log").read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[shown:]:
            say(line)
        shown = len(lines)
        ended = {name: process.returncode for name, process in sites.items() if process.poll() is not None}
        if ended.get("server") == 0:
            return
        for name in ended:
            words = (home / name / "site.log").read_text(encoding="utf-8", errors="replace").strip()[-400:]
            raise QuorumError(f"federation: {name} has ended: {' '.join(words.split())}")
        if time.monotonic() > until:
            raise QuorumError(f"federation: not trained after {PATIENCE_SECONDS:g} s; read {home}/*/site.log")
        time.sleep(0.5)


def _summarize(folder: Path) -> None:
    meeting = next(iter(sorted((folder / layout.OWN / folder.name / "test").glob("*.json"))))
    say(f"federation: {folder.name} summarizes {meeting.name} with its own adapter:")
    command = [sys.executable, "-m", "pipeline", "summarize", "--run", RUN, "--client", folder.name]
    query = "Summarize the whole meeting."
    subprocess.run([*command, "--query", query, str(meeting)], cwd=folder, env=_environment(), check=True)


def _command(folder: Path, name: str) -> None:
    command = [sys.executable, "-m", "pipeline", "federation", name]
    done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise QuorumError(re.sub(r"^error: ", "", done.stderr.strip()[-300:]))


def _environment() -> dict[str, str]:
    """A site knows nothing of the repository but its code."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DVC_ROOT", "QUORUM_BASE")}
    code = str(Path(__file__).parents[2])
    return {**kept, "PYTHONPATH": code, "OMP_NUM_THREADS": "1", "QUORUM_MIRROR": ""}
