"""An organisation's side of a federation: it answers requests, and gives a repeated request the same answer.

The engine of the simulation trains and scores its client. The client's state and the answer are saved in one
transaction, so that a killed node has both or neither. To a repeated request it sends the saved answer, or computes the
answer from the state before.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from pipeline.engines.in_process import EvaluatedData, InProcess
from pipeline.engines.messages import ERRORS, Facts, Reply, Request, RequestKind, digest
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, Sent
from pipeline.federated.blobs import Blobs
from pipeline.federated.checkpoint import blob_names, private_from, private_record
from pipeline.federated.engine import Assignment
from pipeline.federated.figures import undeclared
from pipeline.federated.state import Private
from pipeline.federated.wire import deserialize, serialize, tensors_of
from pipeline.model.adapter import Adapter, pack
from pipeline.workspace.files import flush
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json

ORDER: dict[RequestKind, int] = {"join": 0, "train": 1, "score": 2, "finish": 3}
"""The order of requests in a round."""
SAVED_ROUNDS = 2  # the number of rounds whose answers a node saves


class NodeData(ClientData, EvaluatedData, Protocol):
    """A client's examples, for training and for scoring."""


Finish = Callable[[int, Adapter, Private], Mapping[str, float]]
"""(last round, the server's adapter, what the client stores) -> means over the test set that may leave, by metric."""


class Node:
    """Answers the requests of a server for one client.

    Args:
        order: the hash of the training's order, with which the name of a job begins.
        initial: the first adapter of the training.
        folder: for state and answers, with a folder per job.
        finish: called at the end of the training.
    """

    def __init__(
        self,
        name: str,
        order: str,
        algorithm: Algorithm,
        data: NodeData,
        initial: Adapter,
        folder: Path,
        *,
        seed: int,
        facts: Facts,
        finish: Finish,
    ) -> None:
        self._name, self._order, self._algorithm, self._data = name, order, algorithm, data
        self._initial, self._seed, self._facts, self._finish = initial, seed, facts, finish
        self._home, self._lock = folder, threading.Lock()
        self._answers: list[Json]
        self._engine: InProcess
        self._server: Adapter
        self._begin(order)

    def answer(self, request: Request, body: bytes) -> tuple[Reply, bytes]:
        """Answer a request. Never raises: an error is logged here, and its code is returned."""
        about: Json = {name: getattr(request, name) for name in ("kind", "job", "round", "nonce")}
        with self._lock:
            try:
                if request.kind == "hello":  # Also for another training: facts show how the two differ.
                    return Reply(**about, facts=self._facts), b""
                if request.job.partition("-")[0] != self._order:
                    raise QuorumError("a request for another training", code="another_training")
                if request.job != self._job:  # The same order with other organisations or data.
                    self._begin(request.job)
                reply, tensors = self._answer_once(request, body)
                return Reply(**about, **reply), pack(tensors) if tensors else b""
            except Exception as error:  # Any error may quote private text.
                say(f"node {self._name}: round {request.round}, {request.kind}: {error!r}")
                try:
                    self._restore()
                except QuorumError as worse:
                    say(f"node {self._name}: {worse}")
                code = error.code if isinstance(error, QuorumError) else None
                return Reply(**about, error=code if code in ERRORS else "failed"), b""

    def _answer_once(self, request: Request, body: bytes) -> tuple[Json, Adapter]:
        """The saved answer to the same request, or a new one, which is saved with the state after it."""
        place = [request.round, ORDER[request.kind]]
        content = digest(body)
        for saved in self._answers:
            if saved["place"] == place:
                if saved["request"] == content:
                    return saved["reply"], self._blobs.get(saved["body"])
                if saved is not self._answers[-1] or request.kind != "score":
                    raise QuorumError("the same request had another model before", code="another_content")
                # A server that was killed before it saved the round may have repeated it with other updates.
                self._restore(self._answers[:-1])
                break
        if self._answers and place <= self._answers[-1]["place"]:
            raise QuorumError("a request for an earlier round", code="an_earlier_round")
        reply, tensors = self._compute(request, body)
        entry = {
            "place": place,
            "request": content,
            "reply": reply,
            "body": self._blobs.put(tensors),
            "private": private_record(self._engine.private),
            "server": self._blobs.put(self._server),
            "before": self._engine.began_with(self._name, request.round),
        }
        recent = [one for one in self._answers if one["place"][0] > request.round - SAVED_ROUNDS]
        answers = [*recent, entry]
        self._blobs.commit(json.dumps({"answers": answers}), blob_names(answers))
        for folder in (self._folder, self._folder.parent):
            flush(folder)  # A power cut must not undo what the server has received.
        self._answers = answers
        return reply, tensors

    def _compute(self, request: Request, body: bytes) -> tuple[Json, Adapter]:
        sent = deserialize(body)
        adapter = sent.adapter
        if request.kind == "train":
            return self._train(sent, request.round)
        if request.kind == "finish":
            return {"scores": dict(self._finish(request.round, adapter, self._engine.private))}, {}
        if request.kind == "join":
            self._engine.join(self._name, adapter, request.round)
            self._server = adapter
            return {}, {}
        # To a node that scored the round before, the server's adapter at the start of this one is not sent again.
        began = sent.memory or self._server
        if digest(serialize(Sent(began))) != request.began:
            raise QuorumError("another server's model was scored before", code="another_server")
        unknown = [self._name] if request.unknown else []
        losses = self._engine.score([self._name], adapter, began, request.round, unknown)[self._name]
        self._server = adapter
        return asdict(losses), {}

    def _train(self, sent: Sent, number: int) -> tuple[Json, Adapter]:
        self._engine.submit(Assignment(self._name, sent, number))
        (arrival,) = self._engine.arrivals()
        trace, update = arrival.trace, arrival.update
        if why := undeclared(trace.figures, self._algorithm.declared):
            raise QuorumError(f"{why}, so no answer leaves; see `Algorithm.declared`", code="undeclared")
        reply = {"examples": update.examples, "steps": update.steps, "seconds": trace.seconds, "loss": trace.loss}
        return reply | {"figures": dict(trace.figures)}, tensors_of(update)

    def _begin(self, job: str) -> None:
        """Continue a job after its last answer, or begin it if it is new."""
        self._job, self._folder = job, self._home / job
        self._blobs = Blobs(self._folder)
        self._restore()

    def _restore(self, answers: list[Json] | None = None) -> None:
        """Restore the state after the last of these answers, or of the saved ones; without any, the initial state."""
        if answers is None:
            answers = json.loads(self._blobs.state() or '{"answers": []}')["answers"]
        self._answers = answers
        if last := answers[-1] if answers else None:
            private, self._server = private_from(last["private"], self._blobs), self._blobs.get(last["server"])
        else:
            private = Private.begin(self._blobs, {self._name: ClientState(self._initial)})
            self._server = self._initial
        clients = {self._name: self._data}
        self._engine = InProcess(self._algorithm, clients, clients, private, seed=self._seed, job=self._job)
        if last and last["place"][1] == ORDER["train"]:
            self._engine.before[self._name] = last["place"][0], last["before"]
