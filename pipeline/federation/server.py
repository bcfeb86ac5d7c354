"""The operator's site: Flower's server behind a proxy, and the training, which reaches the organisations through it."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pipeline.engines.remote import Remote, handshake
from pipeline.errors import QuorumError
from pipeline.federated.engine import Engine
from pipeline.federated.history import columns_of, judged
from pipeline.federated.tolerance import Tolerance
from pipeline.federation import tracking
from pipeline.federation.certificates import AUTHORITY, SERVER, days_left
from pipeline.federation.data import agreed_classes, obtain_backbone
from pipeline.federation.facts import job_name, order_hash, planned_training, site_facts
from pipeline.federation.flower.commands import register, server_programs, submit
from pipeline.federation.processes import Supervisor
from pipeline.federation.site import STATE, ServerSite, in_words, socket_path
from pipeline.federation.sockets import SocketLink
from pipeline.model.adapter import Adapter, write_adapter
from pipeline.model.tensor_file import save_checksums
from pipeline.plan.checks import read_params
from pipeline.runs.learners import initial, model_of
from pipeline.runs.training import Finished, train, write_events
from pipeline.stages import plan
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table

START_SECONDS, WARN_DAYS = 60.0, 14
AGAIN = Tolerance(repeats=3, pause=60.0)
"""The rules where params.yaml has none: a node that fails is assigned again."""


def run(site: ServerSite) -> None:
    """Start the server, train with all organisations, and stop the server.

    Raises QuorumError if a certificate, a key or Flower is missing; sites differ; or a round has too few answers.
    """
    _check_certificates()
    plan.run()
    obtain_backbone(layout.run_id(site.run, site.seed))
    with running_server(site) as link:
        train_over(link, site)


@contextmanager
def running_server(site: ServerSite) -> Iterator[SocketLink]:
    """Run Flower's server and the proxy, register the organisations' keys, and yield the link to the nodes."""
    with ExitStack() as closing:
        supervisor = closing.enter_context(Supervisor(STATE))
        superlink, *others = server_programs(site)
        supervisor.start(superlink)
        _wait_for(site.inner_port)
        for program in others:
            supervisor.start(program)
        register(site)
        path = socket_path("training")
        link = SocketLink(path, lambda: submit(path))
        closing.callback(link.close)
        yield link


def train_over(link: SocketLink, site: ServerSite) -> Finished:
    """Shake hands, train, and write the server's adapter, the history, the events and the organisations' facts.

    Raises QuorumError if sites differ, or a round has too few answers.
    """
    run_id = layout.run_id(site.run, site.seed)
    training, order = planned_training(run_id)
    order_id, classes = order_hash(run_id, training), agreed_classes(read_params(), order.setting)
    say(f"server: waiting for {', '.join(site.organisations)}")
    facts = handshake(link, site.organisations, order_id, site_facts(training, order_id, {}))
    job, rules = job_name(order_id, training, facts), training.tolerance or AGAIN
    training = training.model_copy(update={"tolerance": rules})
    write_json(layout.MODELS / run_id / "federation.json", {name: one.model_dump() for name, one in facts.items()})
    with tracking.logged(run_id, training, job) as on_round:

        def opened(*_: object) -> tuple[Adapter, Engine]:
            remote = Remote(link, facts, rules, job=job)
            begins: Adapter = initial(training.learner, model_of(training.learner), classes, training.seed)
            return begins, remote

        finished = train(training, opened, sum(one.train for one in facts.values()), job, run_id, on_round)
        progress = finished.progress
        remote = Remote(link, facts, rules, job=job)
        scores = {name: reply.scores for name, reply in remote.finish(progress.server.adapter, progress.round).items()}
        write_adapter(layout.adapter(run_id, "server"), progress.server.adapter, {"round": progress.round})
        save_checksums(run_id)
        assert order.evaluate is not None
        history = judged(progress.history, order.evaluate)
        write_table(layout.history(run_id), [row.to_row() for row in history], columns_of(history))
        write_events(run_id, training, progress)
        write_json(layout.trained_as(run_id), {"training": job})
        tracking.finish(run_id, job, scores)
    say(f"server: {run_id} is trained in {progress.round} rounds; its adapter is {layout.adapter(run_id, 'server')}")
    for name, means in scores.items():
        say(f"server: {name} reports of its test set: {in_words(means)}")
    return finished


def _check_certificates() -> None:
    """Refuse missing and expired certificates; warn before the server's expires."""
    for path in (AUTHORITY, SERVER):
        if not path.is_file():
            raise QuorumError(f"{path}: is missing; run `python -m pipeline federation certificates`")
    left, remedy = days_left(), "`python -m pipeline federation certificates`"
    if left <= 0:
        raise QuorumError(f"{SERVER}: has expired; run {remedy}, which renews it")
    if left <= WARN_DAYS:
        say(f"server: {SERVER} expires in {left} days; {remedy} renews it")


def _wait_for(port: int) -> None:
    """Wait until something listens on a port of this machine."""
    until = time.monotonic() + START_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > until:
            raise QuorumError(f"server: nothing listens on port {port} after {START_SECONDS:g} s; read superlink.log")
        time.sleep(0.2)
