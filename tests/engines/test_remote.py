"""A federation over messages ends as the simulation of it does, bit for bit, through whatever goes wrong between.

What becomes of one that is killed and goes on is in test_remote_resumed.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from federations import INITIAL, locals_of, same, server_of, three, train
from safetensors.torch import load
from wires import ALGORITHMS, FACTS, JOB, Spoil, Wire, as_it_is, lost, nodes, timeless, trained

from pipeline.engines.messages import FIGURES, Reply, Request
from pipeline.engines.node import Node
from pipeline.engines.remote import Delivered, Undelivered, handshake
from pipeline.errors import QuorumError
from pipeline.federated.algorithms import fedbuff
from pipeline.federated.tolerance import Tolerance


@pytest.mark.parametrize("drawn", [None, 2], ids=["all", "two of three"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_federation_is_its_simulation(make_client: Any, tmp_path: Path, name: str, drawn: int | None) -> None:
    algorithm = ALGORITHMS[name]
    simulated = train(algorithm, three(make_client), 3, clients_per_round=drawn, patience=99)
    wire = Wire(nodes(algorithm, three(make_client), tmp_path))
    progress = trained(algorithm, wire, drawn=drawn)
    assert same(progress.server.adapter, server_of(simulated))
    assert same(progress.server.memory, simulated.progress.server.memory)
    assert timeless(progress.history) == timeless(simulated.progress.history)
    for client, adapter in locals_of(simulated).items():
        kept = wire.nodes[client]._engine.private
        assert same(kept.states[client].adapter, adapter)
        for owner, best in simulated.private.best.items():
            ours = kept.best[owner][client]
            assert (ours.round, ours.loss) == (best[client].round, best[client].loss)
            for model in ("adapter", "sent", "before"):
                assert same(getattr(ours, model), getattr(best[client], model))


# -- what goes wrong on the way ----------------------------------------------------------------------------------------


def repeated(answer: Delivered) -> list[Delivered | Undelivered]:
    return [answer, answer]


def cut(answer: Delivered) -> list[Delivered | Undelivered]:
    return [answer._replace(body=answer.body[: len(answer.body) // 2])]


def forged(**changes: Any) -> Spoil:
    def spoil(answer: Delivered) -> list[Delivered | Undelivered]:
        header = json.dumps(json.loads(answer.header) | changes)
        return [answer._replace(header=header), answer]

    return spoil


def from_someone_else(answer: Delivered) -> list[Delivered | Undelivered]:
    return [answer._replace(name="B" if answer.name == "A" else "A"), answer]


def garbage(answer: Delivered) -> list[Delivered | Undelivered]:
    return [answer._replace(header="{}"), answer]


HARMLESS: dict[str, Spoil] = {
    "repeated": repeated,
    "another nonce": forged(nonce="0" * 32),
    "another kind": forged(kind="score"),
    "from someone else": from_someone_else,
    "no header": garbage,
    "an undeclared field": forged(secret="Ann: we sell"),
}


@pytest.mark.parametrize("what", [*HARMLESS, "lost", "cut"])
def test_whatever_happens_on_the_way_the_bits_are_the_same(make_client: Any, tmp_path: Path, what: str) -> None:
    """In the first round's first answer after three handshakes; lost ones are asked for again."""
    algorithm = ALGORITHMS["fedselectkd, own"]
    still = trained(algorithm, Wire(nodes(algorithm, three(make_client), tmp_path / "still")), 2)
    wire = Wire(nodes(algorithm, three(make_client), tmp_path / "disturbed"))

    wire.spoil.extend([as_it_is] * 3 + [{**HARMLESS, "lost": lost, "cut": cut}[what]])
    disturbed = trained(algorithm, wire, 2, rules=Tolerance(repeats=2))
    assert same(disturbed.server.adapter, still.server.adapter)
    assert timeless(disturbed.history) == timeless(still.history)
    (first, *_) = disturbed.events
    assert first.kind == ("missing" if what in ("lost", "cut") else "refused")


def test_who_has_failed_is_left_alone_for_a_while(
    make_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute after its failure, not at once: of the training that was lost, and of the score."""
    slept: list[float] = []
    monkeypatch.setattr("pipeline.engines.remote.time.sleep", slept.append)
    wire = Wire(nodes(ALGORITHMS["fedavg"], three(make_client), tmp_path))
    wire.spoil.extend([*[as_it_is] * 3, lost, *[as_it_is] * 3, lost])
    trained(ALGORITHMS["fedavg"], wire, 1, rules=Tolerance(repeats=1, pause=60.0))
    assert len(slept) == 2
    assert all(0 < seconds <= 60 for seconds in slept)


def test_a_score_that_is_lost_is_asked_for_again(make_client: Any, tmp_path: Path) -> None:
    algorithm = ALGORITHMS["fedavg"]
    still = trained(algorithm, Wire(nodes(algorithm, three(make_client), tmp_path / "still")), 1)
    wire = Wire(nodes(algorithm, three(make_client), tmp_path / "disturbed"))
    wire.spoil.extend([lambda answer: [answer]] * 6 + [lost])
    disturbed = trained(algorithm, wire, 1, rules=Tolerance(repeats=1))
    assert timeless(disturbed.history) == timeless(still.history)


def test_a_node_that_never_scores_ends_the_training_in_one_line(make_client: Any, tmp_path: Path) -> None:
    algorithm = ALGORITHMS["fedavg"]
    wire = Wire(nodes(algorithm, three(make_client), tmp_path))
    wire.spoil.extend([lambda answer: [answer]] * 6 + [lost])
    with pytest.raises(QuorumError) as caught:
        trained(algorithm, wire, 1)
    assert str(caught.value) == (
        "round 1, score: A was lost on the way; look at its node, then run again, which goes on at the last finished "
        "round"
    )


def test_silence_is_late_at_the_deadline(make_client: Any, tmp_path: Path) -> None:
    algorithm = ALGORITHMS["fedavg"]
    wire = Wire(nodes(algorithm, three(make_client), tmp_path))
    wire.spoil.extend([lambda answer: [answer]] * 3 + [lambda answer: []])
    progress = trained(algorithm, wire, 1, rules=Tolerance(minimum=2, deadline=0.05))
    assert [(event.client, event.why) for event in progress.events] == [("A", "did not answer within 0.05 s")]


# -- what a node refuses ----------------------------------------------------------------------------------------------


def asked(node: Node, kind: Any, round_: int, body: bytes = b"", **more: Any) -> Reply:
    return node.answer(Request(kind=kind, job=more.pop("job", JOB), round=round_, nonce="n", **more), body)[0]


@pytest.fixture
def node_and_body(make_client: Any, tmp_path: Path) -> tuple[Node, bytes]:
    from pipeline.federated.wire import serialize

    return nodes(ALGORITHMS["fedavg"], three(make_client), tmp_path)["A"], serialize(INITIAL, {})


def test_a_node_answers_a_repeated_request_with_the_same_bytes(node_and_body: tuple[Node, bytes]) -> None:
    node, body = node_and_body
    first = node.answer(Request(kind="train", job=JOB, round=1, nonce="one"), body)
    again = node.answer(Request(kind="train", job=JOB, round=1, nonce="two"), body)
    assert (first[0].nonce, again[0].nonce) == ("one", "two")
    assert first[1] == again[1]
    assert first[0].model_dump(exclude={"nonce"}) == again[0].model_dump(exclude={"nonce"})


def test_a_node_refuses_what_it_has_left_behind(node_and_body: tuple[Node, bytes]) -> None:
    """Of rounds 1 to 4 it keeps the answers of 3 and 4."""
    node, body = node_and_body
    replies = [asked(node, "train", round_, body) for round_ in (1, 2, 3, 4)]
    assert [asked(node, "train", round_, body).error for round_ in (2, 3, 4)] == ["an_earlier_round", None, None]
    assert asked(node, "train", 3, body) == replies[2]


def test_a_node_refuses_another_job_another_content_and_another_server(node_and_body: tuple[Node, bytes]) -> None:
    from pipeline.federated.wire import serialize

    node, body = node_and_body
    other = serialize({name: tensor + 1 for name, tensor in INITIAL.items()}, {})
    assert asked(node, "train", 1, body, job="other").error == "another_training"
    assert asked(node, "train", 1, body, job="other-abc").error == "another_training"
    assert asked(node, "train", 1, body).error is None
    assert asked(node, "train", 1, other).error == "another_content"
    assert asked(node, "score", 1, body, began="0" * 64).error == "another_server"


def test_what_a_node_cannot_write_it_has_not_done(node_and_body: tuple[Node, bytes], monkeypatch: Any) -> None:
    """Its disk is full when its first training is written down. When it is empty, the same request has its answer."""
    node, body = node_and_body
    still = asked(node, "train", 1, body)
    with monkeypatch.context() as full:

        def commit(*_: Any) -> None:
            raise QuorumError("no space left", code="disk")

        full.setattr(node._blobs, "commit", commit)
        assert asked(node, "train", 2, body).error == "disk"
    assert asked(node, "train", 1, body) == still
    assert asked(node, "train", 2, body).error is None


def test_facts_that_differ_are_named_with_both_values(make_client: Any, tmp_path: Path) -> None:
    algorithm = ALGORITHMS["fedavg"]
    wire = Wire(nodes(algorithm, three(make_client), tmp_path))
    for changes, told in [
        ({"code": "d"}, "A: code: c there, d here; bring both to one, then start its node again"),
        ({"order": "p"}, "A: order: o there, p here"),
        ({"backbone": "x"}, "A: backbone: b there, x here"),
        ({"packages": {"torch": "2"}}, "A: packages: torch 1 there, 2 here"),
        ({"precision": "bf16"}, "A: precision: fp32 there, bf16 here"),
        ({"threads": 2}, "A: threads: 1 there, 2 here"),
    ]:
        with pytest.raises(QuorumError, match=told):
            handshake(wire, ["A"], JOB, FACTS.model_copy(update=changes))
    others = {"train": 9, "val": 9, "test": 9, "weight": 2.0}
    assert list(handshake(wire, ["A"], JOB, FACTS.model_copy(update=others))) == ["A"]


# -- what leaves an organisation --------------------------------------------------------------------------------------


def test_what_travels_is_the_declared_list(make_client: Any, tmp_path: Path) -> None:
    """Every message of a training, both ways: fields, tensors with names, types and shapes, and nothing else."""
    algorithm = ALGORITHMS["scaffold"]
    wire = Wire(nodes(algorithm, three(make_client), tmp_path))
    trained(algorithm, wire, 2)
    forms = {(name, tuple(tensor.shape), tensor.dtype) for name, tensor in INITIAL.items()}
    allowed = {
        f"{record}{name}": (shape, kind) for name, shape, kind in forms for record in ("adapter/", "memory/variate.")
    }
    count = 0
    for way, header, body in wire.seen:
        kind: type[Request] | type[Reply] = Request if way == "down" else Reply
        told = json.loads(header)
        assert set(told) == set(kind.model_fields)
        if way == "up":
            assert set(told["figures"]) <= FIGURES
        for name, tensor in (load(body) if body else {}).items():
            assert (tuple(tensor.shape), tensor.dtype) == allowed[name]
            count += 1
    # Three clients, two rounds. Down: adapter and variate to train from, an adapter to be scored. Up: both again.
    assert count == 3 * 2 * len(INITIAL) * (2 + 1 + 2)


def test_an_error_says_a_code_and_nothing_private(make_client: Any, tmp_path: Path, capsys: Any) -> None:
    algorithm = ALGORITHMS["fedavg"]
    node = nodes(algorithm, three(make_client), tmp_path)["A"]

    def fit(*_: Any, **__: Any) -> None:
        raise ValueError("Ann said: the merger is off")

    node._data.fit = fit  # type: ignore[method-assign]
    from pipeline.federated.wire import serialize

    reply, body = node.answer(Request(kind="train", job=JOB, round=1, nonce="n"), serialize(INITIAL, {}))
    assert reply.error == "failed"
    assert "merger" not in reply.model_dump_json() + body.decode("latin-1")
    assert "merger" in capsys.readouterr().err


def test_an_undeclared_figure_does_not_leave(make_client: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("pipeline.engines.node.FIGURES", frozenset({"tau"}))
    algorithm = ALGORITHMS["fedselectkd, own"]
    wire = Wire(nodes(algorithm, three(make_client), tmp_path))
    with pytest.raises(QuorumError, match="has a figure that is not on the list"):
        trained(algorithm, wire, 1)


def test_a_buffer_takes_answers_of_nodes_as_they_come(make_client: Any, tmp_path: Path) -> None:
    algorithm = fedbuff.build(fedbuff.Hyperparameters(buffer=2))
    simulated = train(algorithm, three(make_client), 3, patience=99)
    progress = trained(algorithm, Wire(nodes(algorithm, three(make_client), tmp_path)))
    assert same(progress.server.adapter, server_of(simulated))
