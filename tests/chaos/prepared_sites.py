"""Sites before their first start: folders, meetings, keys, certificates, prepared and encoded data.

And the same trainings without any fault, simulated in one process.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from private_meetings import write_meetings
from workspaces import ROOT, Workspace

from chaos.sites import INNER, NODES, PORT, SELECT, SERVER, outcome_of
from pipeline.federation import site_commands
from pipeline.federation.flower.commands import app_digest
from pipeline.federation.loopback import ORGANISATIONS as DOMAINS
from pipeline.federation.loopback import SHARED, exchange_keys
from pipeline.federation.node import open_node
from pipeline.federation.site import SITE, NodeSite, read_site
from pipeline.stages import backbone, plan
from pipeline.workspace.files import write_text
from pipeline.workspace.tracking import Store

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
DOCUMENTS = {"task": "extract", "source": "documents", "file": "data/own/documents", "source_tokens": 160}
DOCUMENTS |= {"backbone": "tiny-bert", "frozen": "e,0-2"}
TEXT = "The cat sat on a mat. A dog came in later. Nobody saw it go. It rained."


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
    params["data"]["documents"] = DOCUMENTS
    params["settings"]["documents"] = {"data": "documents", "kind": "natural"}
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    for name in organisations:
        write_meetings(folder / "data/own" / name, DOMAINS[name], MEETINGS)
        for number, kind in product(range(12), ("texts", "summaries")):
            text = TEXT.replace("cat", f"{name} {number}") if kind == "texts" else "A dog came in later."
            write_text(folder / "data/own" / name / kind / f"{number}.txt", text)
