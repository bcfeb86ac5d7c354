"""An organisation and the operator, each by its own command's code, with a relay in this process instead of Flower.

Tiny weights and a few made-up meetings. Both sites share one folder here. `make chaos-federation` runs them in separate
folders, over Flower.
"""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from private_meetings import CANARY, write_meetings
from relays import scores_sent, trained_over

from pipeline.engines.node import Node
from pipeline.errors import QuorumError
from pipeline.federation import server
from pipeline.federation.facts import job_name, planned_training
from pipeline.federation.loopback import SHARED, first_step
from pipeline.federation.node import open_node
from pipeline.federation.site import NodeSite, ServerSite, socket_path
from pipeline.federation.sockets import serve
from pipeline.runs.training import Finished
from pipeline.stages import plan
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file
from pipeline.workspace.tables import read_table

RUN = "fedselectkd/1"
COMMON: dict[str, Any] = {"run": "fedselectkd", "seed": 1, "host": "127.0.0.1", "port": 1, "inner_port": 2}
NODE = NodeSite(kind="node", organisation="University", scores="means", **COMMON)
SERVER = ServerSite(kind="server", organisations=["University"], **COMMON)


def write_params(**changed: Any) -> None:
    small = {"rounds": 2, "max_tokens": 8, "source_tokens": 200, "target_tokens": 40, "precision": "fp32"}
    small |= {
        "device": "cpu",
        "backbones": ["tiny-llama"],
        "backbone": "tiny-llama",
        "seeds": [1, 2],
        "own": {"University": {"folder": "data/own/University"}},
    }
    content = yaml.safe_load(SHARED.read_text()) | small | changed
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


@pytest.fixture
def here(short: Path) -> Path:
    """The current folder: params.yaml and an organisation's meetings."""
    write_params()
    write_meetings(short / "data/own/University", "Academic", {"train": 2, "val": 2, "test": 2})
    return short


def serve_node(site: NodeSite = NODE) -> None:
    ready = threading.Event()
    threading.Thread(target=serve, args=(open_node(site), socket_path("worker"), ready), daemon=True).start()
    assert ready.wait(60)


def train_with_node() -> Finished:
    return trained_over(SERVER, {"University": socket_path("worker")})


def mlflow_run() -> Any:
    from mlflow import MlflowClient

    client = MlflowClient(layout.mlflow_uri())
    (run,) = client.search_runs([e.experiment_id for e in client.search_experiments()], "tags.engine = 'flower'")
    return run


def test_an_organisation_and_the_operator_train_and_report_means(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve_node()
    assert train_with_node().progress.round == 2
    folder = layout.MODELS / RUN
    assert {path.stem for path in layout.adapters(RUN).glob("*.safetensors")} >= {"server", "University"}
    rows = read_table(layout.history(RUN))
    assert [(row["round"], row["client"]) for row in rows] == [("1", "University"), ("2", "University")]
    facts = json.loads((folder / "federation.json").read_text())["University"]
    assert (facts["train"], facts["val"], facts["test"]) == (6, 6, 6)
    assert facts["data"] == sha256_file(layout.examples("qmsum"))
    run = mlflow_run()
    assert run.info.status == "FINISHED"
    assert run.data.metrics["University/examples"] == facts["test"]
    assert "University/train_loss" in run.data.metrics
    log = capsys.readouterr().err
    for line in ("node University: trained; on its test set: ", "server: University reports of its test set: "):
        (scores,) = [one for one in log.splitlines() if one.startswith(line)]
        assert scores.endswith(", 6 examples")
    # What the operator has: history, the server's adapter, facts, MLflow. The private word is in none of it.
    shown = [folder / "federation.json", layout.history(RUN), layout.adapter(RUN, "server"), here / "mlflow.db"]
    assert all(CANARY.encode() not in path.read_bytes() for path in shown)
    assert CANARY.encode() in layout.examples("qmsum").read_bytes()


@pytest.mark.parametrize("other", [{"learning_rate": 0.5}, {"target_tokens": 30}], ids=["of training", "of encoding"])
def test_a_node_with_other_settings_is_named_before_anything_is_trained(here: Path, other: dict[str, Any]) -> None:
    serve_node()
    write_params(**other)
    plan.run()
    with pytest.raises(QuorumError, match=r"University: order: \w+ there, \w+ here; use the same on both ends"):
        train_with_node()
    assert not layout.checkpoints().is_dir() or not os.listdir(layout.checkpoints())


def test_a_node_that_fails_once_is_assigned_again_without_any_tolerance(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "AGAIN", server.AGAIN.model_copy(update={"pause": 0.0}))
    scores_sent(monkeypatch)
    failures, trained = iter([MemoryError("for a moment")]), Node._train

    def train(node: Node, *sent: Any) -> Any:
        for failure in failures:
            raise failure
        return trained(node, *sent)

    monkeypatch.setattr(Node, "_train", train)
    write_params(tolerance=None)
    serve_node()
    assert [(one.round, one.kind) for one in train_with_node().progress.events] == [(1, "missing"), (1, "repeated")]


def test_a_first_step_is_measured_in_a_site(here: Path) -> None:
    assert 0 < first_step() < 60


def test_a_node_that_reports_no_scores_sends_none(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = scores_sent(monkeypatch)
    serve_node(NODE.model_copy(update={"scores": "nothing"}))
    train_with_node()
    assert sent == {"University": {}}


def test_other_meetings_make_another_training_and_a_removed_meeting_is_not_trained_on(here: Path) -> None:
    before = open_node(NODE)._facts
    next(iter(sorted((here / "data/own/University/train").glob("*.json")))).unlink()
    after = open_node(NODE)._facts
    assert before.order == after.order
    assert before.train > after.train
    training, _ = planned_training(RUN)
    other_code = training.model_copy(update={"code": {**training.code, "pipeline/federated/loop.py": "0"}})
    alone, fewer, both = {"University": before}, {"University": after}, {"University": before, "Council": after}
    jobs = [(training, alone), (training, fewer), (training, both), (other_code, alone)]
    assert len({job_name(before.order, *job) for job in jobs}) == 4


COUNCIL = {"Council": {"folder": "data/own/University"}}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (COUNCIL, "own: has no 'University'; all sites share one"),
        ({"University": {"folder": "data/own/Nowhere"}}, "Nowhere: is not a folder"),
        (COUNCIL | {"University": {"file": "data/own/a.csv"}}, "University: needs a folder of meetings"),
    ],
)
def test_a_missing_folder_is_one_line(here: Path, own: dict[str, Any], message: str) -> None:
    write_params(own=own)
    with pytest.raises(QuorumError, match=message):
        open_node(NODE)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"method": "ZeroShot"}, "trains nothing; choose another run in federation.yaml"),
        ({"method": "AdaCentralized"}, "pools all data in one place, which a federation does not"),
        ({"method": "AdaSingle"}, "nothing of it travels; run it at each organisation by itself"),
        ({"method": "AdaFedAvg", "faults": {"duplicated": 0.1}}, "faults are of the simulation; set faults: null"),
    ],
)
def test_a_run_that_no_federation_can_train_is_refused(here: Path, run: dict[str, Any], message: str) -> None:
    write_params(runs={"fedselectkd": {**run, "setting": "organisations"}})
    plan.run()
    with pytest.raises(QuorumError, match=message):
        planned_training(RUN)
