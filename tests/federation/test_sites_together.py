"""An organisation and the operator, each by its own command's code, with a relay between that is not Flower.

Tiny weights and a few made-up meetings. Both sites share one folder here; `make chaos-federation` has them apart, over
Flower.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from conftest import ROOT
from relays import Relay
from shipped import SHIPPED

from pipeline.errors import QuorumError
from pipeline.federation.facts import job_of, planned_training
from pipeline.federation.link import SocketLink
from pipeline.federation.loopback import params_of_all
from pipeline.federation.node import open_node
from pipeline.federation.server import train_over
from pipeline.federation.site import NodeSite, ServerSite, socket_path
from pipeline.federation.worker import serve
from pipeline.stages import plan
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file
from pipeline.workspace.tables import read_table

RUN = "main/fedselectkd-1"
PRIVATE = "ZEBRAFISH-7741"
"""A word of a private meeting, which must not be found elsewhere."""


def site(kind: Any, **more: Any) -> Any:
    common = {"run": "fedselectkd", "seed": 1, "host": "127.0.0.1", "port": 1, "inner_port": 2}
    return (ServerSite if kind == "server" else NodeSite)(kind=kind, **common, **more)


NODE = site("node", organisation="University", scores="means")
SERVER = site("server", organisations=["University"])


def params(**changed: Any) -> dict[str, Any]:
    own = {"own": {"University": {"folder": "data/own/University"}}, "backbone": "tiny-llama", "rounds": 2}
    return params_of_all(SHIPPED) | own | {"max_tokens": 8, "source_tokens": 200, "target_tokens": 40} | changed


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with params.yaml and an organisation's meetings, in whose summaries a private word stands."""
    with TemporaryDirectory(prefix="q") as name:
        folder = Path(name)
        monkeypatch.chdir(folder)
        for variable in ("DVC_ROOT", "QUORUM_BASE"):
            monkeypatch.delenv(variable, raising=False)
        (folder / "params.yaml").write_text(yaml.safe_dump(params()), encoding="utf-8")
        for split in ("train", "val", "test"):
            for path in sorted((ROOT / "data/sample/qmsum/Academic" / split).glob("*.json"))[:2]:
                target = folder / "data/own/University" / split / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                meeting = json.loads(path.read_text(encoding="utf-8"))
                meeting["specific_query_list"][0]["answer"] += f" {PRIVATE}"
                meeting["meeting_transcripts"][0]["content"] += f" {PRIVATE}"
                target.write_text(json.dumps(meeting), encoding="utf-8")
        yield folder


def served(node: NodeSite = NODE) -> None:
    ready = threading.Event()
    threading.Thread(target=serve, args=(open_node(node), socket_path("worker"), ready), daemon=True).start()
    assert ready.wait(60)


def test_an_organisation_and_the_operator_train_and_tell_means(here: Path) -> None:
    served()
    relay = Relay(socket_path("training"), {"University": socket_path("worker")})
    link = SocketLink(socket_path("training"), relay.start)
    finished = train_over(link, SERVER)
    link.close()
    assert finished.progress.round == 2
    folder = layout.MODELS / RUN
    assert {path.name for path in layout.adapters(RUN).glob("*.safetensors")} >= {
        "server.safetensors", "University.safetensors",
    }  # fmt: skip
    rows = read_table(layout.history(RUN))
    assert [(row["round"], row["client"]) for row in rows] == [("1", "University"), ("2", "University")]
    facts = json.loads((folder / "federation.json").read_text())["University"]
    assert (facts["train"], facts["val"], facts["test"]) == (6, 6, 6)
    assert facts["data"] == sha256_file(layout.examples("qmsum"))
    store = _mlflow_run()
    assert store.info.status == "FINISHED"
    assert store.data.metrics["University/examples"] == facts["test"]
    assert "University/train_loss" in store.data.metrics
    # What the operator has: history, the server's adapter, facts, MLflow. The private word is in none of it.
    shown = [folder / "federation.json", layout.history(RUN), layout.adapter(RUN, "server"), here / "mlflow.db"]
    assert all(PRIVATE.encode() not in path.read_bytes() for path in shown)
    assert PRIVATE.encode() in layout.examples("qmsum").read_bytes()


def _mlflow_run() -> Any:
    from mlflow import MlflowClient

    client = MlflowClient(layout.mlflow_uri())
    (run,) = client.search_runs([e.experiment_id for e in client.search_experiments()], "tags.engine = 'flower'")
    return run


@pytest.mark.parametrize("other", [{"learning_rate": 0.5}, {"target_tokens": 30}], ids=["of training", "of encoding"])
def test_a_node_with_other_knobs_is_named_before_anything_is_trained(here: Path, other: dict[str, Any]) -> None:
    """What is read of a target is no knob of training itself."""
    served()
    (here / "params.yaml").write_text(yaml.safe_dump(params(**other)), encoding="utf-8")
    plan.run()
    relay = Relay(socket_path("training"), {"University": socket_path("worker")})
    link = SocketLink(socket_path("training"), relay.start)
    with pytest.raises(QuorumError, match=r"University: order: \w+ there, \w+ here; bring both to one"):
        train_over(link, SERVER)
    link.close()
    assert not layout.checkpoints().is_dir() or not os.listdir(layout.checkpoints())


def test_a_node_that_tells_nothing_tells_nothing(here: Path) -> None:
    served(site("node", organisation="University"))
    relay = Relay(socket_path("training"), {"University": socket_path("worker")})
    link = SocketLink(socket_path("training"), relay.start)
    train_over(link, SERVER)
    link.close()
    assert not [name for name in _mlflow_run().data.metrics if "rouge" in name]


def test_other_meetings_make_another_training_and_a_meeting_that_is_gone_is_not_trained_on(here: Path) -> None:
    first = open_node(NODE)
    meeting = next(iter(sorted((here / "data/own/University/train").glob("*.json"))))
    meeting.unlink()
    second = open_node(NODE)
    facts = [node._facts for node in (first, second)]
    assert facts[0].order == facts[1].order
    assert facts[0].train > facts[1].train
    training, _ = planned_training(RUN)
    other_code = training.model_copy(update={"code": {**training.code, "pipeline/federated/loop.py": "0"}})
    alone, fewer, both = (
        {"University": facts[0]},
        {"University": facts[1]},
        {"University": facts[0], "Council": facts[1]},
    )
    told = [(training, alone), (training, fewer), (training, both), (other_code, alone)]
    assert len({job_of(facts[0].order, own, who) for own, who in told}) == 4


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"own": {"Council": {"folder": "data/own/University"}}}, "own: has no 'University'; all sites share one"),
        ({"own": {"University": {"folder": "data/own/Nowhere"}}}, "folder .*Nowhere does not exist"),
    ],
)
def test_a_folder_that_is_not_there_is_one_line(here: Path, changed: dict[str, Any], message: str) -> None:
    (here / "params.yaml").write_text(yaml.safe_dump(params(**changed)), encoding="utf-8")
    with pytest.raises(QuorumError, match=message):
        open_node(NODE)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"method": "ZeroShot"}, "trains nothing; choose another run in federation.yaml"),
        ({"method": "AdaCentralized"}, "pools all data in one place, which a federation does not"),
        ({"method": "AdaSingle"}, "nothing of it travels; run it at each organisation by itself"),
        ({"method": "AdaFedAvg", "faults": {"duplicated": 0.1}}, "faults are of the simulation"),
    ],
)
def test_what_no_federation_can_train_is_refused(here: Path, run: dict[str, Any], message: str) -> None:
    whole = params(runs={"fedselectkd": {**run, "setting": "organisations"}})
    (here / "params.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    plan.run()
    with pytest.raises(QuorumError, match=message):
        planned_training(RUN)
    shutil.rmtree(here / "data/plan")
