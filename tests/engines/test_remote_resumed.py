"""A deployed training that is killed and goes on, or in which someone is slow: no answer is lost, nobody is stuck."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from federations import INITIAL, same, server_of, three, train
from pydantic import ValidationError
from wires import ALGORITHMS, JOB, Wire, as_it_is, lost, nodes, timeless, trained

from pipeline.engines.messages import Reply, Request
from pipeline.engines.node import Node
from pipeline.engines.remote import Delivered, Undelivered
from pipeline.federated.algorithms import fedbuff
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import Tolerance
from pipeline.federated.wire import serialize


class KilledServer:
    """Whoever watches rounds: it dies when this one has been scored, and before it is written down."""

    def __init__(self, in_round: int) -> None:
        self._in_round = in_round
        self.written: list[Progress] = []

    def __call__(self, progress: Progress) -> None:
        if progress.round == self._in_round:
            raise KeyboardInterrupt
        self.written.append(progress)

    @property
    def last(self) -> Progress | None:
        return self.written[-1] if self.written else None


@pytest.mark.parametrize("name", ["scaffold", "fedselectkd, own"])
def test_nodes_that_are_killed_after_every_answer_go_on_with_the_same_bits(
    make_client: Any, tmp_path: Path, name: str
) -> None:
    """Each node is made anew, from its folder, before every request."""
    algorithm = ALGORITHMS[name]

    class Killing(Wire):
        def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
            self.nodes = nodes(algorithm, three(make_client), tmp_path / "killed")
            super().send(name, nonce, header, body)

    still = trained(algorithm, Wire(nodes(algorithm, three(make_client), tmp_path / "still")), drawn=2)
    killing = Killing(nodes(algorithm, three(make_client), tmp_path / "killed"))
    killed = trained(algorithm, killing, drawn=2)
    assert same(killed.server.adapter, still.server.adapter)
    assert timeless(killed.history) == timeless(still.history)
    ours, theirs = (nodes(algorithm, three(make_client), tmp_path / kind) for kind in ("killed", "still"))
    for client in "ABC":
        for one, other in [(ours[client]._engine.private.best["local"], theirs[client]._engine.private.best["local"])]:
            assert same(one[client].before, other[client].before)


def test_a_server_that_is_killed_goes_on_from_its_checkpoint(make_client: Any, tmp_path: Path) -> None:
    """It dies when round 2 has been scored and before it was written down: nodes are a whole round ahead of it."""
    algorithm = ALGORITHMS["fedselectkd, own"]
    whole = trained(algorithm, Wire(nodes(algorithm, three(make_client), tmp_path / "whole")))
    wire = Wire(nodes(algorithm, three(make_client), tmp_path / "killed"))
    died = KilledServer(in_round=2)
    with pytest.raises(KeyboardInterrupt):
        trained(algorithm, wire, each=died)
    resumed = trained(algorithm, wire, done=died.last)
    assert same(resumed.server.adapter, whole.server.adapter)
    assert timeless(resumed.history) == timeless(whole.history)


def test_a_late_client_joins_as_it_does_in_the_simulation(make_client: Any, tmp_path: Path) -> None:
    algorithm, joins = ALGORITHMS["fedselectkd, own"], {"C": 2}
    simulated = train(algorithm, three(make_client), 3, joins=joins, patience=99)
    progress = trained(algorithm, Wire(nodes(algorithm, three(make_client), tmp_path)), joins=joins)
    assert same(progress.server.adapter, server_of(simulated))
    assert timeless(progress.history) == timeless(simulated.progress.history)


@pytest.mark.parametrize("round_", [2, 3])
def test_a_server_that_is_killed_while_someone_joins_goes_on(make_client: Any, tmp_path: Path, round_: int) -> None:
    """C comes in with round 2, and has trained when the server dies."""
    algorithm, joins = ALGORITHMS["fedselectkd, own"], {"C": 2}
    whole = trained(algorithm, Wire(nodes(algorithm, three(make_client), tmp_path / "whole")), joins=joins)
    wire = Wire(nodes(algorithm, three(make_client), tmp_path / "killed"))
    died = KilledServer(in_round=round_)
    with pytest.raises(KeyboardInterrupt):
        trained(algorithm, wire, joins=joins, each=died)
    resumed = trained(algorithm, wire, joins=joins, done=died.last)
    assert same(resumed.server.adapter, whole.server.adapter)
    assert timeless(resumed.history) == timeless(whole.history)


def test_a_round_that_is_made_again_of_other_answers_is_scored_again(make_client: Any, tmp_path: Path) -> None:
    """Two of three are enough. A's answer is lost, the others are averaged and scored, the server dies; then A's is
    there. Nodes have scored another model of round 1, which nobody has written down.
    """
    algorithm, rules = ALGORITHMS["fedavg"], Tolerance(minimum=2)
    whole = trained(algorithm, Wire(nodes(algorithm, three(make_client), tmp_path / "whole")), 2, rules=rules)
    wire = Wire(nodes(algorithm, three(make_client), tmp_path / "killed"))
    wire.spoil.extend([*[as_it_is] * 3, lost])
    died = KilledServer(in_round=1)
    with pytest.raises(KeyboardInterrupt):
        trained(algorithm, wire, 2, rules=rules, each=died)
    resumed = trained(algorithm, wire, 2, rules=rules)
    assert same(resumed.server.adapter, whole.server.adapter)
    assert timeless(resumed.history) == timeless(whole.history)


def test_a_slow_organisations_losses_are_left_out_where_a_round_can_do_without_it(
    make_client: Any, tmp_path: Path
) -> None:
    """A says nothing in round 1, neither to the training nor to the score; in round 2 it hears what became of it."""
    algorithm = ALGORITHMS["fedavg"]
    wire = Wire(nodes(algorithm, three(make_client), tmp_path))

    def silent(answer: Delivered) -> list[Delivered | Undelivered]:
        return []

    wire.spoil.extend([*[as_it_is] * 3, silent, *[as_it_is] * 2, silent])
    progress = trained(algorithm, wire, 2, rules=Tolerance(minimum=2, deadline=0.2))
    assert [(row.round, row.client) for row in progress.history] == [(1, "B"), (1, "C"), (2, "A"), (2, "B"), (2, "C")]
    assert all(row.server_validation_loss is not None for row in progress.history)


class Slow(Wire):
    """C's answers come after three others. Whether it was asked anything meanwhile is noted."""

    def __init__(self, parties: Mapping[str, Node]) -> None:
        super().__init__(parties)
        self._late: list[Delivered] = []
        self._others = 0
        self.asked_while_busy: list[str] = []

    def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
        if name == "C" and self._late:
            self.asked_while_busy.append(Request.model_validate_json(header).kind)
        super().send(name, nonce, header, body)

    def receive(self, seconds: float | None) -> Delivered | Undelivered | None:
        while self._coming:
            coming = self._coming.popleft()
            if isinstance(coming, Delivered) and coming.name == "C" and '"train"' in coming.header:
                self._late.append(coming)
                continue
            self._others += isinstance(coming, Delivered) and '"train"' in coming.header
            return coming
        return self._late.pop(0) if self._late else super().receive(seconds)


def test_a_buffer_waits_for_nobodys_losses(make_client: Any, tmp_path: Path) -> None:
    """A and B fill a buffer of two again and again, while C is still at its first training."""
    algorithm = fedbuff.build(fedbuff.Hyperparameters(buffer=2))
    wire = Slow(nodes(algorithm, three(make_client), tmp_path))
    progress = trained(algorithm, wire, 3)
    assert wire.asked_while_busy == []
    assert {row.client for row in progress.history if row.round == 1} == {"A", "B"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"examples": 1999}, "tells of 1999 examples, and had 3 when the training began"),
        ({"steps": 0}, "tells of no optimizer step"),
        ({"figures": {"round": 7.0}}, "tells 'round', which is no declared figure"),
    ],
)
def test_numbers_that_no_honest_client_tells_are_refused(
    make_client: Any, tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    algorithm = ALGORITHMS["fedavg"]
    wire = Wire(nodes(algorithm, three(make_client), tmp_path))

    def lying(answer: Delivered) -> list[Delivered | Undelivered]:
        reply = Reply.model_validate_json(answer.header).model_copy(update=changes)
        return [answer._replace(header=reply.model_dump_json())]

    wire.spoil.extend([*[as_it_is] * 3, lying])
    progress = trained(algorithm, wire, 1, rules=Tolerance(minimum=2))
    assert [(event.client, event.kind, event.why) for event in progress.events] == [("A", "missing", why)]


def test_a_job_of_other_organisations_begins_anew_and_the_former_one_is_kept(make_client: Any, tmp_path: Path) -> None:
    """One order, and other meetings somewhere: the first round is trained again, from where everyone begins."""
    node = nodes(ALGORITHMS["fedselectkd, own"], three(make_client), tmp_path)["A"]
    body = serialize(INITIAL, {})

    def trained_in(job: str, round_: int) -> Reply:
        return node.answer(Request(kind="train", job=job, round=round_, nonce="n"), body)[0]

    first = [trained_in(f"{JOB}-one", round_) for round_ in (1, 2, 3)]
    again = trained_in(f"{JOB}-two", 1)
    assert again.model_copy(update={"job": f"{JOB}-one", "seconds": first[0].seconds}) == first[0]
    assert trained_in(f"{JOB}-one", 3) == first[2]
    assert trained_in(f"{JOB}-one", 1).error == "an_earlier_round"


@pytest.mark.parametrize("job", ["../elsewhere", "a/b", "", "a-b-c"])
def test_a_job_names_a_folder_and_nothing_else(job: str) -> None:
    with pytest.raises(ValidationError):
        Request(kind="train", job=job, round=1, nonce="n")
