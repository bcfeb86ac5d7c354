"""What sites have before they are started: folders, made-up meetings, keys, certificates, prepared and encoded data.

And the same trainings without any fault, simulated in one process.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from sites import INNER, NODES, ORGANISATIONS, PORT, ROOT, SELECT, SERVER, rounds, tensors

from pipeline.engines.replayed import Replayed
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.events import Event
from pipeline.federated.state import Private
from pipeline.federation import site_commands
from pipeline.federation.flower.commands import app_digest
from pipeline.federation.loopback import ORGANISATIONS as DOMAINS
from pipeline.federation.loopback import introduce, params_of_all
from pipeline.federation.node import open_node
from pipeline.federation.site import SITE, NodeSite, read_site
from pipeline.plan.orders import TrainOrder, read_order
from pipeline.runs.export import export
from pipeline.runs.index import read_encoded
from pipeline.runs.meetings import learners
from pipeline.runs.training import Learners, Opened, in_process, train
from pipeline.stages import backbone, plan
from pipeline.workspace import layout
from pipeline.workspace.tracking import Store

TAKEN = {"train": 3, "val": 1, "test": 1}
"""Meetings of each split that an organisation has."""
ROUNDS = 3
CANARY = b"ZEBRAFISH-7741"
"""A word of every private meeting, said and in summaries, which no server may ever hold."""
COMMON = {"run": SELECT, "seed": 1, "host": "127.0.0.1", "port": PORT}
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
}
"""What a federation of the tests may train; all sites know all of them."""


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
        introduce(home / SERVER, home / name, digest)


class Simulation:
    """The same orders with all organisations in one process, and no fault. Nothing is trained before it is asked for.

    Args:
        folder: where it is laid out.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        _lay_folder(folder, ORGANISATIONS)
        (folder / "data/sample").symlink_to(ROOT / "data/sample")
        for stage, *arguments in (("plan",), ("backbone",), ("ingest", "qmsum"), ("prepare", "qmsum")):
            self._made(stage, *arguments)
        for stage in ("partition", "encode"):
            self._made(stage, "main")

    def outcome(self, run: str = SELECT) -> dict[str, Any]:
        """As `Federation.outcome` tells it."""
        self._made("train", f"main/{run}-1")
        return self._found(run)

    def replayed(self, run: str, recorded: Sequence[Event]) -> dict[str, Any]:
        """The outcome where answers come in the order in which they once came."""
        run_id = f"main/{run}-1"
        with entered(self._folder):
            order = read_order(layout.order("train", run_id), TrainOrder)
            encoded = read_encoded(run_id)
            training = order.training
            assert training is not None
            assert order.evaluate is not None

            def load(advance: Callable[[int], None], pooled: bool) -> Learners:
                return learners(training, encoded, advance, pooled=pooled)

            def open_(advance: Callable[[int], None], algorithm: Algorithm, private: Private) -> Opened:
                opened = in_process(training, run, load)(advance, algorithm, private)
                return opened._replace(engine=Replayed(opened.engine, recorded))

            finished = train(training, open_, 1, run, run_id, lambda rows: None)
            export(run_id, finished, order.evaluate, encoded)
        return self._found(run)

    def _made(self, stage: str, *arguments: str) -> None:
        with entered(self._folder):
            importlib.import_module(f"pipeline.stages.{stage}").run(*arguments)

    def _found(self, run: str) -> dict[str, Any]:
        found = {name: tensors(self._folder, run, name) for name in (SERVER, *ORGANISATIONS)}
        return {**found, "history": rounds(self._folder, run)}


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
                meeting = json.loads(path.read_text(encoding="utf-8"))
                meeting["meeting_transcripts"][0]["content"] += f" {CANARY.decode()}"
                meeting["specific_query_list"][0]["answer"] += f" {CANARY.decode()}"
                (target / path.name).write_text(json.dumps(meeting), encoding="utf-8")


def _params() -> dict[str, Any]:
    shipped = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    small = {"backbone": "tiny-llama", "rounds": ROUNDS, "source_tokens": 300, "target_tokens": 60, "max_tokens": 8}
    runs = {name: {**own, "setting": "organisations"} for name, own in RUNS.items()}
    return params_of_all(shipped) | small | {"device": "cpu", "runs": runs}


def _told(name: str) -> dict[str, Any]:
    if name == SERVER:
        return {**COMMON, "kind": "server", "inner_port": INNER, "organisations": list(ORGANISATIONS)}
    return {**COMMON, "kind": "node", "organisation": name, "inner_port": NODES[name]}
