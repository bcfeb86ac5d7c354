"""A classifier over two organisations with a file of texts each; each node is a process with a folder."""

import multiprocessing
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from relays import scores_sent, trained_over

from pipeline.errors import QuorumError
from pipeline.federation import node as deployed
from pipeline.federation.data import agreed_classes, obtain_backbone
from pipeline.federation.node import open_node
from pipeline.federation.site import STATE, NodeSite, ServerSite, socket_path
from pipeline.federation.sockets import serve
from pipeline.plan.checks import read_params
from pipeline.stages import plan
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.tables import read_table

LABELS = {"Acme": ("billing", "delivery"), "Brown": ("delivery", "returns")}
"""Organisation -> the labels of its texts. Neither has those of both."""
COMMON: dict[str, Any] = {"run": "fedavg", "seed": 1, "host": "127.0.0.1", "port": 1, "inner_port": 2}
ACME = NodeSite(kind="node", organisation="Acme", scores="means", **COMMON)
PARAMS: dict[str, Any] = yaml.safe_load("""
page: tasks
scale: small
seeds: [1, 2]
device: cpu
precision: fp32
sources: [tickets]
backbones: [tiny-bert]
backbone: tiny-bert
own: {Acme: {file: data/own/Acme.csv}, Brown: {file: data/own/Brown.csv}}
data:
  tickets: {task: classify, source: tickets, file: data/own/tickets.csv, classes: [billing, delivery, returns]}
source_tokens: 32
rounds: 2
batch_size: 4
learning_rate: 0.01
settings: {organisations: {data: tickets, kind: natural}}
runs: {fedavg: {setting: organisations, method: AdaFedAvg}}
""")


def write_site(folder: Path, name: str = "", **changed: Any) -> Path:
    """params.yaml, and an organisation's file: six training texts and two of each other split."""
    (folder / "data/own").mkdir(parents=True, exist_ok=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(PARAMS | changed), encoding="utf-8")
    if name:
        splits = ["train"] * 6 + ["val"] * 2 + ["test"] * 2
        rows = [f"about {LABELS[name][i % 2]} {i},{LABELS[name][i % 2]},{split}" for i, split in enumerate(splits)]
        (folder / f"data/own/{name}.csv").write_text("\n".join(["text,label,split", *rows]), encoding="utf-8")
    return folder


def serve_node(folder: Path, name: str, ready: Any) -> None:
    os.chdir(folder)
    serve(open_node(ACME.model_copy(update={"organisation": name})), socket_path("worker"), ready)


def test_a_classifier_is_trained_over_organisations_that_report_means(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = scores_sent(monkeypatch)
    context = multiprocessing.get_context("fork")
    ready = {name: context.Event() for name in LABELS}
    nodes = [
        context.Process(target=serve_node, args=(write_site(short / name, name), name, ready[name]), daemon=True)
        for name in LABELS
    ]
    for node in nodes:
        node.start()
    monkeypatch.chdir(write_site(short / "server"))
    plan.run()
    obtain_backbone("fedavg/1")
    assert all(one.wait(60) for one in ready.values())
    workers = {name: short / name / STATE / "worker.sock" for name in LABELS}
    try:
        trained_over(ServerSite(kind="server", organisations=list(LABELS), **COMMON), workers)
    finally:
        for node in nodes:
            node.kill()
            node.join()
    assert {name: (set(means), means["examples"]) for name, means in sent.items()} == {
        name: ({"accuracy", "test_loss", "examples"}, 2) for name in LABELS
    }
    assert [row["round"] for row in read_table(layout.history("fedavg/1"))] == ["1", "1", "2", "2"]
    facts = read_json(layout.MODELS / "fedavg/1/federation.json")
    assert {name: (one["train"], one["val"], one["test"]) for name, one in facts.items()} == dict.fromkeys(
        LABELS, (6, 2, 2)
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"own": {"Acme": {"file": "data/own/gone.csv"}}}, "gone.csv: could not be read"),
        ({"data": {"classes": []}}, r"data\.tickets\.classes: is missing; list those of all organisations"),
        ({"data": {"classes": ["billing"]}}, r"data\.tickets\.classes: has no 'delivery', which Acme has; add it"),
    ],
)
def test_a_file_that_does_not_fit_is_one_line(short: Path, changed: dict[str, Any], message: str) -> None:
    data = {"tickets": PARAMS["data"]["tickets"] | changed.get("data", {})}
    write_site(short, "Acme", **changed | {"data": data})
    with pytest.raises(QuorumError, match=message):
        open_node(ACME)


@pytest.mark.parametrize(
    ("task", "classes"), [("classify", ("billing", "delivery", "returns")), ("answer", ("start", "end"))]
)
def test_sites_agree_on_classes(short: Path, task: str, classes: tuple[str, ...]) -> None:
    """They are listed, but for a task whose classes do not depend on its data."""
    listed = {"task": task} | ({"classes": []} if task == "answer" else {})
    write_site(short, data={"tickets": PARAMS["data"]["tickets"] | listed})
    assert agreed_classes(read_params(), "organisations") == classes


def test_a_metric_of_sums_is_their_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of two spans of one sentence are right: 200 · 2 / (2 + 2)."""
    row = {"id": "a", "client": "Acme", "f1": 400.0, "spans": 4, "true": 2, "loss_sum": 3.0, "items": 6}
    learner = SimpleNamespace(task="pipeline.tasks.tag")
    monkeypatch.setattr(deployed, "planned_run", lambda _: SimpleNamespace(name="st", seed=1, learner=learner))
    monkeypatch.setattr(deployed, "read_result", lambda _: {1: {"scores": {"examples": [row]}}})
    assert deployed.mean_scores("st/1") == {"f1": 100.0, "test_loss": 0.5, "examples": 1}
