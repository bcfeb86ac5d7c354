"""An organisation's node: it prepares and encodes the organisation's folder, then answers the server's requests."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from pipeline.corpora.example import write_examples
from pipeline.corpora.notes import Notes
from pipeline.corpora.own import split_folder
from pipeline.corpora.qmsum import own_folder, read_folder
from pipeline.engines.node import Node
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ServerState
from pipeline.federated.state import Private, Progress
from pipeline.federation.certificates import AUTHORITY
from pipeline.federation.facts import order_hash, planned_training, site_facts
from pipeline.federation.flower.commands import node_programs
from pipeline.federation.processes import Supervisor
from pipeline.federation.site import ALLOWED, KEYS, STATE, NodeSite, in_words, socket_path
from pipeline.federation.worker import serve
from pipeline.model.adapter import Adapter
from pipeline.plan.schema import Params, read_params
from pipeline.runs.export import export
from pipeline.runs.index import Encoded, planned_key, read_encoded
from pipeline.runs.meetings import learners
from pipeline.runs.preparing import partition_and_encode
from pipeline.runs.result_files import read_result
from pipeline.runs.training import Finished, bind
from pipeline.stages import backbone, evaluate, generate, plan
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file, write_json
from pipeline.workspace.progress import say

NO_METRICS = ("client", "id", "meeting", "loss_sum", "tokens")
"""Columns of a row of scores that are no metrics."""


def run(site: NodeSite) -> None:
    """Prepare the data, then answer requests until the process ends.

    Raises:
        QuorumError: the folder, the keys or Flower's environment is not usable.
    """
    _check_files(site)
    node = open_node(site)
    with running_node(site, node):
        say(f"node {site.organisation}: ready, and waiting for {site.host}:{site.port} (Ctrl-C ends it)")
        threading.Event().wait()


@contextmanager
def running_node(site: NodeSite, node: Node) -> Iterator[None]:
    """Run the node's worker and Flower's programs."""
    ready = threading.Event()
    threading.Thread(target=serve, args=(node, socket_path("worker"), ready), daemon=True).start()
    ready.wait()
    shutil.rmtree(STATE / "flower/executor/apps", ignore_errors=True)  # Flower does not check an unpacked app again
    with Supervisor(STATE) as supervisor:
        for program in node_programs(site):
            supervisor.start(program)
        yield


def open_node(site: NodeSite) -> Node:
    """Prepare the organisation's data and return its node, which can train."""
    run_id = layout.run_id(layout.MAIN, site.run, site.seed)
    params = read_params()
    encoded = prepare(params, site, run_id)
    training, order = planned_training(run_id)
    learner = learners(training, encoded, lambda done: None, pooled=False)
    splits = encoded.clients[site.organisation]
    counts: dict[str, int] = {split: len(entries) for split, entries in splits.items()}
    order_id = order_hash(run_id, training)
    weight = training.weights.get(site.organisation, 1.0)

    def evaluate_on_test(round_: int, server: Adapter, private: Private) -> Mapping[str, float]:
        progress = Progress(round_, ServerState(server))
        assert order.evaluate is not None
        export(run_id, Finished(progress, private), order.evaluate, encoded)
        write_json(layout.trained_as(run_id), {"training": planned_key(run_id)})
        generate.run(run_id)
        evaluate.run(run_id)
        means = mean_scores(run_id, site.organisation)
        say(f"node {site.organisation}: trained; on its test set: {in_words(means)}")
        return means if site.scores == "means" else {}

    return Node(
        site.organisation,
        order_id,
        bind(training),
        learner.trained[site.organisation],
        learner.initial,
        layout.work() / "federation",
        seed=training.seed,
        facts=site_facts(training, order_id, counts, weight, sha256_file(layout.examples("qmsum"))),
        finish=evaluate_on_test,
    )


def prepare(params: Params, site: NodeSite, run_id: str) -> Encoded:
    """Plan, obtain the backbone, turn the organisation's folder into examples, and encode them.

    Raises:
        QuorumError: params.yaml does not name the organisation, or its folder has no meetings.
    """
    if site.organisation not in params.own:
        raise QuorumError(f"params.yaml: own: has no {site.organisation!r}; all sites share one params.yaml")
    own = params.own[site.organisation]
    plan.run()
    if not (layout.BACKBONE / layout.ABOUT_BACKBONE).is_file():
        backbone.run()
    raw = own_folder(layout.raw("qmsum"), site.organisation)
    shutil.rmtree(raw, ignore_errors=True)  # removed meetings must not be trained on
    split_folder(layout.home() / own.folder, raw, roles=own.roles)
    notes = Notes()
    name = site.organisation
    examples, meetings = read_folder(raw, corpus=name, domain=name, span_end=params.span_end, notes=notes)
    write_examples(layout.examples("qmsum"), examples)
    about = {"source": {"source": "own", "commit": None}, "meetings": meetings, "examples": len(examples)}
    write_json(layout.notes("qmsum"), about)
    alone = params.model_copy(update={"own": {name: own}})
    partition_and_encode(alone, layout.MAIN, {run_id: (site.run, site.seed)}, {one.id: one for one in examples})
    return read_encoded(run_id)


def mean_scores(run_id: str, client: str) -> dict[str, float]:
    """The mean of every metric over the client's test examples, the test loss, and the number of examples."""
    scores: dict[str, Any] = read_result(layout.result(run_id))["scores"]
    rows = scores["examples"]
    found = {name: fmean(row[name] for row in rows) for name in rows[0] if name not in NO_METRICS}
    return {**found, "test_loss": scores["clients"][client]["best_loss"], "examples": len(rows)}


def _check_files(site: NodeSite) -> None:
    """Refuse to start without the authority's certificate, the node's key and the list of allowed apps."""
    remedies = {
        AUTHORITY: "the server's operator has it; lay it there",
        KEYS / site.organisation: "run `python -m pipeline federation certificates`",
        ALLOWED: "`python -m pipeline federation app` prints the sha256 of your own checkout's app; write it there",
    }
    for path, remedy in remedies.items():
        if not path.is_file() or not path.read_bytes().strip():
            raise QuorumError(f"{path}: is missing or empty; {remedy}")
