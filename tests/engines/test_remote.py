"""A federation over messages has the bits of its simulation, despite faults on the way.

Killed servers and nodes are in test_remote_resumed.py.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from federations import INITIAL, build, locals_of, same, three, train
from pydantic import ValidationError
from safetensors.torch import load
from wires import ALGORITHMS, FACTS, JOB, Disturbance, Wire, equal, lost, nodes, silent, timeless, trained, wire

from pipeline.engines.messages import Reply, Request
from pipeline.engines.node import Node
from pipeline.engines.remote import handshake
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientResult, Sent
from pipeline.federated.figures import Bounds
from pipeline.federated.tolerance import Tolerance
from pipeline.federated.wire import serialize

FEDAVG, SELECTIVE = ALGORITHMS["fedavg"], ALGORITHMS["fedselectkd, own"]
BODY = serialize(Sent(INITIAL))
OVER_ONE = "reports share_distilled 1.5, which is not between 0 and 1"


@pytest.mark.parametrize("selected", [None, 2], ids=["all", "two of three"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_federation_is_its_simulation(make_client: Any, tmp_path: Path, name: str, selected: int | None) -> None:
    algorithm = ALGORITHMS[name]
    simulated = train(algorithm, three(make_client), 3, clients_per_round=selected, patience=99)
    made = wire(algorithm, three(make_client), tmp_path)
    assert equal(trained(algorithm, made, selected=selected), simulated.progress)
    for client, adapter in locals_of(simulated).items():
        private = made.nodes[client]._engine.private
        assert same(private.states[client].adapter, adapter)
        for owner, best in simulated.private.best.items():
            ours, theirs = private.best[owner][client], best[client]
            assert (ours.round, ours.loss) == (theirs.round, theirs.loss)
            for model in ("adapter", "sent", "before"):
                assert same(getattr(ours, model), getattr(theirs, model))


def test_a_buffer_takes_updates_of_nodes_as_they_arrive(make_client: Any, tmp_path: Path) -> None:
    algorithm = build("FedBuff", buffer=2)
    simulated = train(algorithm, three(make_client), 3, patience=99)
    progress = trained(algorithm, wire(algorithm, three(make_client), tmp_path))
    assert same(progress.server.adapter, simulated.progress.server.adapter)


def forged(**changes: Any) -> Disturbance:
    """A forged reply before the true one."""
    return lambda answer: [answer._replace(header=json.dumps(json.loads(answer.header) | changes)), answer]


DISTURBANCES: dict[str, Disturbance] = {
    "repeated": lambda answer: [answer, answer],
    "another nonce": forged(nonce="0" * 32),
    "another kind": forged(kind="score"),
    "from someone else": lambda answer: [answer._replace(name="B" if answer.name == "A" else "A"), answer],
    "no header": lambda answer: [answer._replace(header="{}"), answer],
    "an undeclared field": forged(secret="Ann: we sell"),
    "lost": lost,
    "cut": lambda answer: [answer._replace(body=answer.body[: len(answer.body) // 2])],
}
DISHONEST = [
    ("fedavg", {"examples": 1999}, "missing", "reports 1999 examples, and had 3 when the training began"),
    ("fedavg", {"steps": 0}, "missing", "reports no optimizer steps"),
    ("fedavg", {"figures": {"tau": 7.0}}, "refused", "reports 'tau', which is not a declared figure"),
    ("fedkd", {"figures": {"tau": -1.0}}, "refused", "reports tau -1, which is not between -0.001 and inf"),
    ("fedkd", {"figures": {"share_distilled": 1.5}}, "refused", OVER_ONE),
    ("fedkd", {"figures": {"share_distilled": 1.0, "tau": 9.0}}, None, None),
]
DIFFERENCES = [
    ({"code": "d"}, "code: c there, d here"),
    ({"order": "p"}, "order: o there, p here"),
    ({"backbone": "x"}, "backbone: b there, x here"),
    ({"packages": {"torch": "2"}}, "packages: torch 1 there, 2 here"),
    ({"precision": "bf16"}, "precision: fp32 there, bf16 here"),
    ({"threads": 2}, "threads: 1 there, 2 here"),
]


@pytest.mark.parametrize("what", DISTURBANCES)
def test_whatever_happens_on_the_way_the_bits_are_the_same(make_client: Any, tmp_path: Path, what: str) -> None:
    """It happens to the first training's reply. A lost or cut one is requested again."""
    still = trained(SELECTIVE, wire(SELECTIVE, three(make_client), tmp_path / "still"), 2)
    made = wire(SELECTIVE, three(make_client), tmp_path / "disturbed", DISTURBANCES[what])
    disturbed = trained(SELECTIVE, made, 2, rules=Tolerance(repeats=2))
    assert equal(disturbed, still)
    assert disturbed.events[0].kind == ("missing" if what in ("lost", "cut") else "refused")


def test_a_failed_request_is_repeated_after_a_pause(make_client: Any, tmp_path: Path) -> None:
    """A minute after the failure: of a training that was lost, and of a score. No loss changes."""
    slept: list[float] = []
    made = wire(FEDAVG, three(make_client), tmp_path, lost, *[lambda answer: [answer]] * 3, lost)
    still = trained(FEDAVG, wire(FEDAVG, three(make_client), tmp_path / "still"), 1)
    with patch("pipeline.engines.remote.time.sleep", slept.append):
        again = trained(FEDAVG, made, 1, rules=Tolerance(repeats=1, pause=60.0))
    assert timeless(again.history) == timeless(still.history)
    assert [0 < seconds <= 60 for seconds in slept] == [True, True]


def test_a_node_that_never_scores_ends_the_training_in_one_line(make_client: Any, tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match=r"^round 1, score: A was lost on the way; look at its node, [^\n]*$"):
        trained(FEDAVG, wire(FEDAVG, three(make_client), tmp_path, lost, after=6), 1)


def test_silence_is_late_at_the_deadline(make_client: Any, tmp_path: Path) -> None:
    made = wire(FEDAVG, three(make_client), tmp_path, silent)
    progress = trained(FEDAVG, made, 1, rules=Tolerance(minimum=2, deadline=0.05))
    assert [(event.client, event.why) for event in progress.events] == [("A", "did not answer within 0.05 s")]


@pytest.mark.parametrize(("name", "changes", "kind", "why"), DISHONEST)
def test_numbers_that_no_honest_client_sends_are_refused(
    make_client: Any, tmp_path: Path, name: str, changes: dict[str, Any], kind: str | None, why: str | None
) -> None:
    """Also figures that the training does not declare; federated averaging declares none."""
    algorithm = ALGORITHMS[name]
    made = wire(algorithm, three(make_client), tmp_path, lambda answer: forged(**changes)(answer)[:1])
    events = trained(algorithm, made, 1, rules=Tolerance(minimum=2)).events
    assert [(event.client, event.kind, event.why) for event in events] == ([("A", kind, why)] if kind else [])


def test_a_reply_to_anything_but_a_training_has_no_figures(make_client: Any, tmp_path: Path) -> None:
    made = wire(SELECTIVE, three(make_client), tmp_path, forged(figures={"tau": 1.0}), after=6)
    with pytest.raises(QuorumError, match=r"^round 1, score: A reports figures, and trained nothing; "):
        trained(SELECTIVE, made, 1)


@pytest.fixture
def node(make_client: Any, tmp_path: Path) -> Node:
    return nodes(SELECTIVE, three(make_client), tmp_path)["A"]


def replied(node: Node, kind: Any, number: int, body: bytes = BODY, job: str = JOB, **more: Any) -> Reply:
    return node.answer(Request(kind=kind, job=job, round=number, nonce="n", **more), body)[0]


def test_a_node_refuses_rounds_whose_answers_it_no_longer_has(node: Node) -> None:
    """Of rounds 1 to 4 it has the answers of 3 and 4."""
    replies = [replied(node, "train", number) for number in (1, 2, 3, 4)]
    assert [replied(node, "train", number).error for number in (2, 3, 4)] == ["an_earlier_round", None, None]
    assert replied(node, "train", 3) == replies[2]


def test_a_node_refuses_another_job_another_content_and_another_server(node: Node) -> None:
    other = serialize(Sent({name: tensor + 1 for name, tensor in INITIAL.items()}))
    assert {replied(node, "train", 1, job=job).error for job in ("other", "other-abc")} == {"another_training"}
    assert replied(node, "train", 1).error is None
    assert replied(node, "train", 1, other).error == "another_content"
    assert replied(node, "score", 1, began="0" * 64).error == "another_server"


def test_a_job_of_other_participants_begins_again_and_the_former_job_is_saved(node: Node) -> None:
    """The same order with other data somewhere: the first round is trained again, from the initial adapter."""
    first = [replied(node, "train", number, job=f"{JOB}-one") for number in (1, 2, 3)]
    again = replied(node, "train", 1, job=f"{JOB}-two")
    assert again.model_copy(update={"job": f"{JOB}-one", "seconds": first[0].seconds}) == first[0]
    assert replied(node, "train", 3, job=f"{JOB}-one") == first[2]
    assert replied(node, "train", 1, job=f"{JOB}-one").error == "an_earlier_round"


@pytest.mark.parametrize("job", ["../elsewhere", "a/b", "", "a-b-c"])
def test_a_job_names_a_folder_and_nothing_else(job: str) -> None:
    with pytest.raises(ValidationError):
        Request(kind="train", job=job, round=1, nonce="n")


def test_what_a_node_cannot_save_it_has_not_done(node: Node) -> None:
    """Its disk is full when it saves a training. Once there is space, the same request has its answer."""
    still = replied(node, "train", 1)
    with patch.object(node._blobs, "commit", side_effect=QuorumError("no space left", code="disk")):
        assert replied(node, "train", 2).error == "disk"
    assert replied(node, "train", 1) == still
    assert replied(node, "train", 2).error is None


@pytest.mark.parametrize(("changes", "difference"), DIFFERENCES)
def test_facts_that_differ_are_named_with_both_values(node: Node, changes: dict[str, Any], difference: str) -> None:
    with pytest.raises(QuorumError, match=f"^A: {difference}; "):
        handshake(Wire({"A": node}), ["A"], JOB, FACTS.model_copy(update=changes))


def test_what_travels_is_the_declared_list(make_client: Any, tmp_path: Path) -> None:
    """Every message of a training, both ways: fields, tensors with names, shapes and types, and nothing else."""
    algorithm = ALGORITHMS["scaffold"]
    made = wire(algorithm, three(make_client), tmp_path)
    trained(algorithm, made, 2)
    records, count = ("adapter/", "memory/variate."), 0
    allowed = {f"{record}{name}": (t.shape, t.dtype) for name, t in INITIAL.items() for record in records}
    for way, header, body in made.seen:
        fields = json.loads(header)
        assert set(fields) == set((Request if way == "down" else Reply).model_fields)
        assert way == "down" or set(fields["figures"]) <= set(algorithm.declared)
        for name, tensor in (load(body) if body else {}).items():
            assert (tensor.shape, tensor.dtype) == allowed[name]
            count += 1
    # Three clients, two rounds. Down: adapter and variate to train, an adapter to score. Up: adapter and variate.
    assert count == 3 * 2 * len(INITIAL) * (2 + 1 + 2)


def test_an_error_says_a_code_and_nothing_private(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    with patch.object(node._data, "fit", side_effect=ValueError("Ann said: the merger is off")):
        reply, body = node.answer(Request(kind="train", job=JOB, round=1, nonce="n"), BODY)
    assert reply.error == "failed"
    assert "merger" not in reply.model_dump_json() + body.decode("latin-1")
    assert "merger" in capsys.readouterr().err


@pytest.mark.parametrize("declared", [True, False])
def test_a_figure_leaves_a_node_only_if_its_objective_or_algorithm_declares_it(
    make_client: Any, tmp_path: Path, *, declared: bool
) -> None:
    """The algorithm adds `examples_used` to the figures of its objective."""

    def client_update(*args: Any) -> ClientResult:
        state, update, trace = SELECTIVE.client_update(*args)
        return state, update, replace(trace, figures={**trace.figures, "examples_used": 4.0})

    figures = {"examples_used": Bounds(0.0)} if declared else {}
    algorithm = replace(SELECTIVE, client_update=client_update, figures=figures)
    node = nodes(algorithm, three(make_client), tmp_path)["A"]
    reply, body = node.answer(Request(kind="train", job=JOB, round=1, nonce="n"), BODY)
    assert (reply.error, bool(body)) == ((None, True) if declared else ("undeclared", False))
    expected = {"share_distilled", "tau", "teacher_entropy", "cross_entropy", "examples_used"} if declared else set()
    assert set(reply.figures) == expected
