"""Organisations and the operator, each by its own command's code, with a relay in this process instead of Flower.

Tiny weights and a few made-up meetings or texts. Sites of meetings share one folder here; each node of texts is a
process with a folder. `make chaos-federation` runs all in separate folders, over Flower.
"""

import json
import multiprocessing
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from labelled import PLAIN
from private_meetings import CANARY, write_meetings
from relays import scores_sent, served, trained_over
from workspaces import Workspace, as_yaml

from pipeline.engines.node import Node
from pipeline.errors import QuorumError
from pipeline.federation import node as deployed
from pipeline.federation import server
from pipeline.federation.data import agreed_classes, obtain_backbone
from pipeline.federation.facts import job_name, planned_training
from pipeline.federation.loopback import SHARED, first_step
from pipeline.federation.node import open_node
from pipeline.federation.site import STATE, NodeSite, ServerSite, socket_path
from pipeline.federation.sockets import serve
from pipeline.plan.checks import read_params
from pipeline.runs.training import Finished
from pipeline.stages import plan
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_file
from pipeline.workspace.tables import read_table

RUN = "fedselectkd/1"
COMMON: dict[str, Any] = {"seed": 1, "host": "127.0.0.1", "port": 1, "inner_port": 2}
NODE = NodeSite(kind="node", run="fedselectkd", organisation="University", scores="means", **COMMON)
SERVER = ServerSite(kind="server", run="fedselectkd", organisations=["University"], **COMMON)


def write_params(**changed: Any) -> None:
    small = {"rounds": 2, "max_tokens": 8, "source_tokens": 200, "target_tokens": 40, "precision": "fp32"}
    small |= {"device": "cpu", "backbones": ["tiny-llama"], "backbone": "tiny-llama", "seeds": [1, 2]}
    small |= {"own": {"University": {"folder": "data/own/University"}}}
    content = yaml.safe_load(SHARED.read_text()) | small | changed
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


@pytest.fixture
def here(short: Path) -> Path:
    """The current folder: params.yaml and an organisation's meetings."""
    write_params()
    write_meetings(short / "data/own/University", "Academic", {"train": 2, "val": 2, "test": 2})
    return short


def serve_node(site: NodeSite = NODE) -> None:
    served(open_node(site), socket_path("worker"))


def train_with_node() -> Finished:
    return trained_over(SERVER, {"University": socket_path("worker")})


def test_organisation_and_operator_train_and_report_means(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serve_node()
    assert train_with_node().progress.round == 2
    folder = layout.MODELS / RUN
    assert {path.stem for path in layout.adapters(RUN).glob("*.safetensors")} >= {"server", "University"}
    rows = read_table(layout.history(RUN))
    assert [(row["round"], row["client"]) for row in rows] == [("1", "University"), ("2", "University")]
    facts = json.loads((folder / "federation.json").read_text())["University"]
    assert (facts["train"], facts["val"], facts["test"]) == (6, 6, 6)
    assert facts["data"] == sha256_file(layout.examples("qmsum"))
    by_flower = "from runs join tags using (run_uuid) where tags.key = 'engine' and tags.value = 'flower'"
    assert Workspace(here).logged(f"select status {by_flower}") == [("FINISHED",)]
    logged = dict(Workspace(here).logged("select key, value from metrics"))
    assert logged["University/examples"] == facts["test"]
    assert "University/train_loss" in logged
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


def test_a_node_that_fails_once_is_assigned_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where params.yaml has no rules."""
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
    why = "failed; its operator's log says why"
    events = [(one.round, one.kind, one.why) for one in train_with_node().progress.events]
    assert events == [(1, "missing", why), (1, "repeated", "is assigned again")]


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
MISSING = [
    (COUNCIL, "own: has no 'University'; all sites share one"),
    (COUNCIL | {"University": {"file": "data/own/a.csv"}}, "University: needs a folder of meetings"),
]
REFUSED = [
    ({"method": "ZeroShot"}, "trains nothing; choose another run in federation.yaml"),
    ({"method": "AdaCentralized"}, "pools all data in one place, which a federation does not"),
    ({"method": "AdaSingle"}, "nothing of it travels; run it at each organisation by itself"),
    ({"method": "AdaFedAvg", "faults": {"duplicated": 0.1}}, "faults are of the simulation; set faults: null"),
]


@pytest.mark.parametrize(("own", "message"), MISSING)
def test_a_missing_folder_is_one_line(here: Path, own: dict[str, Any], message: str) -> None:
    write_params(own=own)
    with pytest.raises(QuorumError, match=message):
        open_node(NODE)


@pytest.mark.parametrize(("run", "message"), REFUSED)
def test_a_run_that_no_federation_can_train_is_refused(here: Path, run: dict[str, Any], message: str) -> None:
    write_params(runs={"fedselectkd": {**run, "setting": "organisations"}})
    plan.run()
    with pytest.raises(QuorumError, match=message):
        planned_training(RUN)


LABELS = {"Acme": ("billing", "delivery"), "Brown": ("delivery", "returns")}
"""Organisation -> the labels of its texts. Neither has those of both."""
ACME = NodeSite(kind="node", run="fedavg", organisation="Acme", scores="means", **COMMON)
TICKETS: dict[str, Any] = {"task": "classify", "source": "tickets", "file": "data/own/tickets.csv"}
TICKETS |= {"classes": ["billing", "delivery", "returns"]}
PARAMS: dict[str, Any] = PLAIN | {
    "own": {name: {"file": f"data/own/{name}.csv"} for name in LABELS},
    "settings": {"organisations": {"data": "tickets", "kind": "natural"}},
    "runs": {"fedavg": {"setting": "organisations", "method": "AdaFedAvg"}},
}
PARAMS |= {"scales": {"laptop": {}}, "sources": ["tickets"], "backbones": ["tiny-bert"], "backbone": "tiny-bert"}
PARAMS |= {"data": {"tickets": TICKETS}, "source_tokens": 32, "sections": {}}


def write_site(folder: Path, name: str = "", **changed: Any) -> Path:
    """params.yaml, and an organisation's file: six training texts and two of each other split."""
    (folder / "data/own").mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(as_yaml(PARAMS | changed), encoding="utf-8")
    if name:
        splits = ["train"] * 6 + ["val"] * 2 + ["test"] * 2
        rows = [f"about {LABELS[name][i % 2]} {i},{LABELS[name][i % 2]},{split}" for i, split in enumerate(splits)]
        (folder / f"data/own/{name}.csv").write_text("\n".join(["text,label,split", *rows]), encoding="utf-8")
    return folder


def serve_texts(folder: Path, name: str, ready: Any) -> None:
    os.chdir(folder)
    serve(open_node(ACME.model_copy(update={"organisation": name})), socket_path("worker"), ready)


def test_a_classifier_is_trained_and_organisations_report_means(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = scores_sent(monkeypatch)
    context = multiprocessing.get_context("fork")
    ready = {name: context.Event() for name in LABELS}
    served = [(write_site(short / name, name), name, ready[name]) for name in LABELS]
    nodes = [context.Process(target=serve_texts, args=own, daemon=True) for own in served]
    for node in nodes:
        node.start()
    monkeypatch.chdir(write_site(short / "server"))
    plan.run()
    obtain_backbone("fedavg/1")
    assert all(one.wait(60) for one in ready.values())
    workers = {name: short / name / STATE / "worker.sock" for name in LABELS}
    try:
        trained_over(ServerSite(kind="server", run="fedavg", organisations=list(LABELS), **COMMON), workers)
    finally:
        for node in nodes:
            node.kill()
            node.join()
    expected = dict.fromkeys(LABELS, ({"accuracy", "test_loss", "examples"}, 2))
    assert {name: (set(means), means["examples"]) for name, means in sent.items()} == expected
    facts = read_json(layout.MODELS / "fedavg/1/federation.json")
    assert {name: (one["train"], one["val"], one["test"]) for name, one in facts.items()} == dict.fromkeys(
        LABELS, (6, 2, 2)
    )


@pytest.mark.parametrize(
    ("classes", "message"),
    [([], "is missing; list those of all organisations"), (["billing"], "has no 'delivery', which Acme has; add it")],
)
def test_classes_that_do_not_fit_are_one_line(short: Path, classes: list[str], message: str) -> None:
    write_site(short, "Acme", data={"tickets": TICKETS | {"classes": classes}})
    with pytest.raises(QuorumError, match=rf"data\.tickets\.classes: {message}"):
        open_node(ACME)


@pytest.mark.parametrize(
    ("task", "classes"), [("classify", ("billing", "delivery", "returns")), ("answer", ("start", "end"))]
)
def test_sites_agree_on_classes(short: Path, task: str, classes: tuple[str, ...]) -> None:
    """They are listed, but for a task whose classes do not depend on its data."""
    listed = {"task": task} | ({"classes": []} if task == "answer" else {})
    write_site(short, data={"tickets": TICKETS | listed})
    assert agreed_classes(read_params(), "organisations") == classes


def test_a_metric_of_sums_is_their_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of two spans of one sentence are right: 200 · 2 / (2 + 2)."""
    row = {"id": "a", "client": "Acme", "f1": 400.0, "spans": 4, "true": 2, "loss_sum": 3.0, "items": 6}
    learner = SimpleNamespace(task="pipeline.tasks.tag")
    monkeypatch.setattr(deployed, "planned_run", lambda _: SimpleNamespace(name="st", seed=1, learner=learner))
    monkeypatch.setattr(deployed, "read_result", lambda _: {1: {"scores": {"examples": [row]}}})
    assert deployed.mean_scores("st/1") == {"f1": 100.0, "test_loss": 0.5, "examples": 1}
