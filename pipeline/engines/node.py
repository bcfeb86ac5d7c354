"""An organisation's end of a federation: it answers each request, and a repeated one with the same answer.

Its client is trained and scored by the very engine that simulates one. What it keeps and what it answered are written
in one transaction, so that a kill leaves both or neither: whoever asks again gets the answer that was given, or has it
made from the state before.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast, get_args

from torch import Tensor

from pipeline.engines.in_process import EvaluatedData, InProcess
from pipeline.engines.messages import FIGURES, ErrorCode, Facts, Kind, Reply, Request, digest
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, Sent
from pipeline.federated.blobs import Blobs
from pipeline.federated.checkpoint import named, of_private, to_private
from pipeline.federated.engine import Arrival
from pipeline.federated.state import Private
from pipeline.federated.wire import named_records, packed, unpacked
from pipeline.model.adapter import Adapter, pack
from pipeline.workspace.files import flush
from pipeline.workspace.progress import say

ORDER: dict[Kind, int] = {"join": 0, "train": 1, "score": 2, "finish": 3}
"""Of what is asked in one round."""
KEPT_ROUNDS = 2


class Data(ClientData, EvaluatedData, Protocol):
    """A client's examples, to train on and to be scored by."""


Finish = Callable[[int, Adapter, Private], Mapping[str, float]]
"""(last round, the server's adapter, what the client keeps) -> means over its test set that may be told."""


class Node:
    """
    Args:
        order: a hash of what the training is told; the name of a job begins with it.
        initial: the adapter that everyone begins with.
        folder: where state and answers lie, in a folder of each job.
        finish: what is done when the training is over.
    """

    def __init__(
        self,
        name: str,
        order: str,
        algorithm: Algorithm,
        data: Data,
        initial: Adapter,
        folder: Path,
        *,
        seed: int,
        facts: Facts,
        finish: Finish,
    ) -> None:
        self._name, self._order, self._algorithm, self._data = name, order, algorithm, data
        self._initial, self._seed, self._facts, self._finish = initial, seed, facts, finish
        self._home, self._alone = folder, threading.Lock()
        self._answers: list[dict[str, Any]]
        self._engine: InProcess
        self._server: Adapter
        self._begin(order)

    def answer(self, request: Request, body: bytes) -> tuple[Reply, bytes]:
        """Never raises: an error's text is logged here, and its code is the answer."""
        about: dict[str, Any] = {
            "kind": request.kind,
            "job": request.job,
            "round": request.round,
            "nonce": request.nonce,
        }
        with self._alone:
            try:
                if request.kind == "hello":  # which says by what two trainings differ
                    return Reply(**about, facts=self._facts), b""
                if request.job.partition("-")[0] != self._order:
                    raise QuorumError("was asked for another training", code="another_training")
                if request.job != self._job:  # of the same order: other organisations, or other meetings
                    self._begin(request.job)
                told, tensors = self._once(request, body)
                return Reply(**{**told, **about}), tensors
            except Exception as error:  # whatever it is, it may quote private text
                say(f"node {self._name}: round {request.round}, {request.kind}: {error!r}")
                try:
                    self._restore()
                except QuorumError as worse:
                    say(f"node {self._name}: {worse}")
                code = error.code if isinstance(error, QuorumError) else "failed"
                known = cast(ErrorCode, code if code in get_args(ErrorCode) else "failed")
                return Reply(**about, error=known), b""

    def _once(self, request: Request, body: bytes) -> tuple[dict[str, Any], bytes]:
        """The answer that was given, or a new one, written down with the state that it leaves."""
        place = [request.round, ORDER[request.kind]]
        asked = digest(body)
        for kept in self._answers:
            if kept["place"] == place:
                if kept["asked"] == asked:
                    return kept["told"], _body(self._blobs.get(kept["body"]))
                if kept is not self._answers[-1] or request.kind != "score":
                    raise QuorumError("was asked this before, with another model", code="another_content")
                # A server that was killed before it wrote the round down may have made it of other answers.
                self._stand_after(self._answers[:-1])
                break
        if self._answers and place <= self._answers[-1]["place"]:
            raise QuorumError("was asked for an earlier round", code="an_earlier_round")
        told, tensors = self._made(request, body)
        before = self._engine.began_with(self._name, request.round)
        entry = {
            "place": place,
            "asked": asked,
            "told": told,
            "body": self._blobs.put(tensors),
            "private": of_private(self._engine.private),
            "server": self._blobs.put(self._server),
            "before": self._blobs.put(before),
        }
        recent = [one for one in self._answers if one["place"][0] > request.round - KEPT_ROUNDS]
        answers = [*recent, entry]
        self._blobs.commit(json.dumps({"answers": answers}), named(answers))
        for folder in (self._folder, self._folder.parent):
            flush(folder)  # what the server has been told no power cut may take back
        self._answers = answers
        return told, _body(tensors)

    def _made(self, request: Request, body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        adapter, memory = unpacked(body)
        if request.kind == "train":
            return self._trained(Sent(adapter, memory), request.round)
        if request.kind == "score":
            return self._scored(adapter, memory, request), {}
        if request.kind == "finish":
            return {"scores": dict(self._finish(request.round, adapter, self._engine.private))}, {}
        self._engine.join(self._name, adapter, request.round)
        self._server = adapter
        return {}, {}

    def _trained(self, sent: Sent, round_: int) -> tuple[dict[str, Any], dict[str, Any]]:
        self._engine.submit(self._name, sent, round_)
        (arrival,) = self._engine.arrivals()
        assert isinstance(arrival, Arrival)
        report, update = arrival.report, arrival.update
        if strange := sorted(set(report.figures) - FIGURES):
            raise QuorumError(f"figure {strange[0]!r} may not travel", code="undeclared")
        told = {
            "examples": update.examples,
            "steps": update.steps,
            "seconds": report.seconds,
            "loss": report.loss,
            "figures": dict(report.figures),
        }
        return told, named_records(update.adapter, update.memory)

    def _scored(self, server: Adapter, told: Adapter, request: Request) -> dict[str, Any]:
        """
        Args:
            told: with what the round began, where this node was not asked about the round before.
        """
        began = told or self._server
        if digest(packed(began, {})) != request.began:
            raise QuorumError("was told of another server's model before", code="another_server")
        unknown = [self._name] if request.unknown else []
        losses = self._engine.score([self._name], server, began, request.round, unknown)[self._name]
        self._server = server
        return {"local": losses.local, "server": losses.server, "began": losses.began}

    def _begin(self, job: str) -> None:
        """Stand where a job was left, which is its beginning if it is new."""
        self._job, self._folder = job, self._home / job
        self._blobs = Blobs(self._folder)
        self._restore()

    def _restore(self) -> None:
        """As after the last answer that is on disk; before the first, as everyone begins."""
        text = self._blobs.state()
        self._stand_after(json.loads(text)["answers"] if text else [])

    def _stand_after(self, answers: list[dict[str, Any]]) -> None:
        """As when the last of these had been given."""
        self._answers = answers
        last = self._answers[-1] if self._answers else None
        if last is None:
            private = Private.begin(self._blobs, {self._name: ClientState(self._initial)})
        else:
            private = to_private(last["private"], self._blobs)
        clients = {self._name: self._data}
        self._engine = InProcess(self._algorithm, clients, clients, private, seed=self._seed, job=self._job)
        self._server = self._blobs.get(last["server"]) if last else self._initial
        if last and last["place"][1] == ORDER["train"]:
            self._engine.remember(self._name, self._blobs.get(last["before"]), last["place"][0])


def _body(records: Mapping[str, Tensor]) -> bytes:
    """That of an answer, from the blob that it is kept as; an empty one is no bytes."""
    return pack(records) if records else b""
