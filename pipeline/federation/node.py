"""An organisation's node: it prepares and encodes the organisation's folder, then answers the server's requests."""

import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pipeline.engines.node import Node
from pipeline.errors import QuorumError
from pipeline.evaluation.pooled import value_of
from pipeline.evaluation.scores import read_rows
from pipeline.federated.algorithm import ServerState
from pipeline.federated.state import Private, Progress
from pipeline.federation.certificates import AUTHORITY
from pipeline.federation.data import obtain_backbone, prepare
from pipeline.federation.facts import order_hash, planned_training, site_facts
from pipeline.federation.flower.commands import node_programs
from pipeline.federation.processes import Supervisor
from pipeline.federation.site import ALLOWED, KEYS, STATE, NodeSite, in_words, socket_path
from pipeline.federation.sockets import serve
from pipeline.model.adapter import Adapter
from pipeline.plan.checks import read_params
from pipeline.plan.orders import planned_run
from pipeline.runs.export import export
from pipeline.runs.index import planned_key
from pipeline.runs.learners import clients_of
from pipeline.runs.result_files import read_result
from pipeline.runs.training import Finished, bind
from pipeline.stages import evaluate, plan, predict
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file, write_json
from pipeline.workspace.progress import say


def run(site: NodeSite) -> None:
    """Prepare the data, then answer requests until the process ends.

    Raises QuorumError if the folder, the keys or Flower's environment is not usable.
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
    name, run_id = site.organisation, layout.run_id(site.run, site.seed)
    plan.run()
    obtain_backbone(run_id)
    manifest, index = prepare(read_params(), name, run_id)
    training, order = planned_training(run_id)
    clients = clients_of(training, manifest, index, lambda done: None, pooled=False)
    counts: dict[str, int] = {split: len(ids) for split, ids in manifest[name].items()}
    order_id = order_hash(run_id, training)
    weight = training.weights.get(name, 1.0)

    def finish(round_: int, server: Adapter, private: Private) -> Mapping[str, float]:
        progress = Progress(round_, ServerState(server))
        export(run_id, Finished(progress, private), order, manifest, index)
        write_json(layout.trained_as(run_id), {"training": planned_key(run_id)})
        predict.run(site.run, [site.seed])  # the run's other seeds are not trained here
        evaluate.run(site.run, [site.seed])
        means = mean_scores(run_id)
        say(f"node {name}: trained; on its test set: {in_words(means)}")
        return means if site.scores == "means" else {}

    own = sha256_file(layout.examples(planned_run(run_id).data[0]))
    facts = site_facts(training, order_id, counts, weight, own)
    home, data = layout.work() / "federation", clients.trained[name]
    return Node(
        name, order_id, bind(training), data, clients.initial, home, seed=training.seed, facts=facts, finish=finish
    )


def mean_scores(run_id: str) -> dict[str, float]:
    """The mean of every metric over its test examples, the test loss, and the number of examples."""
    row = planned_run(run_id)
    rows = read_rows(read_result(row.name)[row.seed]["scores"]["examples"])
    metrics = load_task(row.learner.task).metrics if row.learner else ()
    found = {metric.name: value_of(rows, metric) for metric in metrics if metric.name in rows[0].values}
    return {**found, "test_loss": value_of(rows, LOSS), "examples": len(rows)}


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
