"""What sites have before they are started: folders, made-up meetings, keys, certificates, prepared and encoded data.

And the same training without any fault, simulated in one process.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from sites import INNER, NODES, ORGANISATIONS, PORT, ROOT, RUN, SERVER, rounds, tensors

from pipeline.federation import certificates, site_commands
from pipeline.federation.flower.commands import app_digest
from pipeline.federation.loopback import ORGANISATIONS as DOMAINS
from pipeline.federation.loopback import params_of_all
from pipeline.federation.node import open_node
from pipeline.federation.site import ALLOWED, KEYS, SITE, NodeSite, read_site
from pipeline.stages import backbone, plan
from pipeline.workspace.tracking import Store

TAKEN = {"train": 3, "val": 1, "test": 1}
"""Meetings of each split that an organisation has."""
ROUNDS = 3
COMMON = {"run": "fedselectkd", "seed": 1, "host": "127.0.0.1", "port": PORT}


def lay_out(home: Path) -> None:
    """Four sites that have been prepared, and were never started."""
    for name in (SERVER, *ORGANISATIONS):
        _lay_folder(home / name, [] if name == SERVER else [name])
        with entered(home / name):
            (home / name / SITE).write_text(yaml.safe_dump(_told(name)), encoding="utf-8")
            site_commands.certificates()
            own = read_site()
            if isinstance(own, NodeSite):
                open_node(own)
            else:
                plan.run()
                backbone.run()
                Store()  # its tables take seconds
    with entered(home / SERVER):
        digest = app_digest()
    for name in ORGANISATIONS:
        exchange(home / SERVER, home / name)
        (home / name / ALLOWED).write_text(f"{digest}\n", encoding="utf-8")


def exchange(server: Path, node: Path) -> None:
    """What the operator and an organisation give each other."""
    (node / certificates.AUTHORITY).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(server / certificates.AUTHORITY, node / certificates.AUTHORITY)
    (server / KEYS).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(node / KEYS / f"{node.name}.pub", server / KEYS / f"{node.name}.pub")


def simulated(folder: Path) -> dict[str, Any]:
    """The outcome of the same order with all organisations in this process, and no fault."""
    _lay_folder(folder, ORGANISATIONS)
    (folder / "data/sample").symlink_to(ROOT / "data/sample")
    run = RUN.relative_to("models").as_posix()
    stages = [("plan",), ("backbone",), ("ingest", "qmsum"), ("prepare", "qmsum")]
    stages += [("partition", "main"), ("encode", "main"), ("train", run)]
    with entered(folder):
        for stage, *arguments in stages:
            importlib.import_module(f"pipeline.stages.{stage}").run(*arguments)
    found = {name: tensors(folder / RUN / f"adapters/{name}.safetensors") for name in (SERVER, *ORGANISATIONS)}
    return {**found, "history": rounds(folder)}


@contextmanager
def entered(folder: Path) -> Iterator[None]:
    """As long as it lasts, this process works there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("QUORUM_MIRROR", "")
        for variable in ("DVC_ROOT", "QUORUM_BASE"):
            patch.delenv(variable, raising=False)
        yield


def _lay_folder(folder: Path, organisations: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(_params()), encoding="utf-8")
    for name in organisations:
        for split, count in TAKEN.items():
            target = folder / "data/own" / name / split
            target.mkdir(parents=True)
            meetings = sorted((ROOT / "data/sample/qmsum" / DOMAINS[name] / split).glob("*.json"))
            for path in meetings[:count]:
                shutil.copy(path, target)


def _params() -> dict[str, Any]:
    shipped = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    small = {"backbone": "tiny-llama", "rounds": ROUNDS, "source_tokens": 300, "target_tokens": 60, "max_tokens": 8}
    return params_of_all(shipped) | small | {"local_start": "own", "device": "cpu"}


def _told(name: str) -> dict[str, Any]:
    if name == SERVER:
        return {**COMMON, "kind": "server", "inner_port": INNER, "organisations": list(ORGANISATIONS)}
    return {**COMMON, "kind": "node", "organisation": name, "inner_port": NODES[name]}
