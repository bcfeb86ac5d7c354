"""Sites before their first start: folders, meetings, keys, certificates, prepared and encoded data.

And the same trainings without any fault, simulated in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from private_meetings import write_meetings
from replayed import Replayed
from sites import INNER, NODES, ORGANISATIONS, PORT, SELECT, SERVER, outcome_of
from workspaces import ROOT, Workspace

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.engine import Engine, Event
from pipeline.federated.state import Private
from pipeline.federation import site_commands
from pipeline.federation.flower.commands import app_digest
from pipeline.federation.loopback import ORGANISATIONS as DOMAINS
from pipeline.federation.loopback import SHARED, exchange_keys
from pipeline.federation.node import open_node
from pipeline.federation.site import SITE, NodeSite, read_site
from pipeline.model.adapter import Adapter
from pipeline.plan.orders import TrainOrder, read_order
from pipeline.runs.export import export
from pipeline.runs.index import read_index, read_manifest
from pipeline.runs.learners import in_process
from pipeline.runs.training import train
from pipeline.stages import backbone, plan
from pipeline.workspace import layout
from pipeline.workspace.tracking import Store

MEETINGS = {"train": 3, "val": 1, "test": 1}
"""Meetings of an organisation in each split."""
ROUNDS = 3
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
"""The runs in every site's params.yaml."""


def prepare_sites(home: Path) -> None:
    """Prepare four sites that have never been started."""
    for name in (SERVER, *ORGANISATIONS):
        _write_folder(home / name, [] if name == SERVER else [name])
        own: dict[str, Any] = {"kind": "server", "inner_port": INNER, "organisations": list(ORGANISATIONS)}
        if name != SERVER:
            own = {"kind": "node", "inner_port": NODES[name], "organisation": name}
        (home / name / SITE).write_text(yaml.safe_dump(COMMON | own), encoding="utf-8")
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
    for name in ORGANISATIONS:
        exchange_keys(home / SERVER, home / name, digest)


class Simulation:
    """The same orders, with all organisations in one process and no fault. A run is trained when it is first needed.

    Args:
        folder: its workspace, which is created.
    """

    def __init__(self, folder: Path) -> None:
        self._workspace = Workspace(folder)
        _write_folder(folder, ORGANISATIONS)
        for name in ("checksums", "sample"):
            (folder / "data" / name).symlink_to(ROOT / "data" / name)
        stages = ("plan",), ("backbone", "tiny-llama"), ("ingest", "qmsum"), ("prepare", "qmsum")
        for stage in (*stages, ("partition", "organisations"), ("encode", "organisations")):
            self._workspace.stage(*stage)

    def outcome(self, run: str = SELECT) -> dict[str, Any]:
        """See `outcome_of`."""
        self._workspace.stage("train", run)
        return self._read(run)

    def replayed(self, run: str, recorded: Sequence[Event]) -> dict[str, Any]:
        """The outcome if answers arrive in the recorded order."""
        run_id = layout.run_id(run, 1)
        with self._workspace.entered():
            order = read_order(layout.order("train", run), TrainOrder)
            manifest, index = read_manifest(order.setting, 1), read_index(order.setting, run)
            training = order.at(1)
            assert training is not None

            def open_(advance: Callable[[int], None], algorithm: Algorithm, private: Private) -> tuple[Adapter, Engine]:
                initial, engine = in_process(training, manifest, index, run, advance, algorithm, private)
                return initial, Replayed(engine, recorded)

            finished = train(training, open_, 1, run, run_id, lambda rows: None)
            export(run_id, finished, order, manifest, index)
        return self._read(run)

    def _read(self, run: str) -> dict[str, Any]:
        return outcome_of(dict.fromkeys((SERVER, *ORGANISATIONS), self._workspace.folder), run)


def _write_folder(folder: Path, organisations: Sequence[str]) -> None:
    """params.yaml, and the meetings of some organisations."""
    folder.mkdir(parents=True)
    small = {"rounds": ROUNDS, "source_tokens": 300, "target_tokens": 60, "max_tokens": 8, "device": "cpu"}
    small |= {"backbones": ["tiny-llama"], "backbone": "tiny-llama"}
    runs = {name: {**own, "setting": "organisations"} for name, own in RUNS.items()}
    params = yaml.safe_load(SHARED.read_text()) | small | {"runs": runs, "sections": {}}
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    for name in organisations:
        write_meetings(folder / "data/own" / name, DOMAINS[name], MEETINGS)
