"""Deployed trainings with killed servers, killed nodes and slow clients: no answer is lost, no one waits in vain."""

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from federations import build, same, three, train
from wires import ALGORITHMS, Wire, equal, lost, nodes, silent, trained, unchanged, wire

from pipeline.engines.remote import Delivered, Undelivered
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import Tolerance

FEDAVG, SELECTIVE = ALGORITHMS["fedavg"], ALGORITHMS["fedselectkd, own"]


@pytest.mark.parametrize("name", ["scaffold", "fedselectkd, own"])
def test_nodes_killed_after_every_answer_resume_bit_for_bit(make_client: Any, tmp_path: Path, name: str) -> None:
    """Before every request, each node is created again from its folder."""
    algorithm = ALGORITHMS[name]

    class Killing(Wire):
        def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
            self.nodes = {}  # a killed process has released its file
            self.nodes = nodes(algorithm, three(make_client), tmp_path / "killed")
            super().send(name, nonce, header, body)

    still = trained(algorithm, wire(algorithm, three(make_client), tmp_path / "still"), selected=2)
    killed = trained(algorithm, Killing(dict.fromkeys("ABC")), selected=2)  # type: ignore[arg-type]
    assert equal(killed, still)
    ours, theirs = (nodes(algorithm, three(make_client), tmp_path / kind) for kind in ("killed", "still"))
    for client in "ABC":
        best, other = (kind[client]._engine.private.best["local"][client] for kind in (ours, theirs))
        assert same(best.before, other.before)


@pytest.mark.parametrize(
    ("joins", "number"), [({}, 2), ({"C": 2}, 2), ({"C": 2}, 3)], ids=["all", "while C joins", "after C joined"]
)
def test_a_killed_server_resumes_from_its_checkpoint_as_the_simulation_goes_on(
    make_client: Any, tmp_path: Path, joins: Mapping[str, int], number: int
) -> None:
    """It is killed after this round was scored and before it was saved: nodes are a round ahead of it."""
    through = trained(SELECTIVE, wire(SELECTIVE, three(make_client), tmp_path / "through"), joins=joins)
    assert equal(through, train(SELECTIVE, three(make_client), 3, joins=joins, patience=99).progress)
    made = wire(SELECTIVE, three(make_client), tmp_path / "killed")
    last = killed_in(number, made, joins=joins, algorithm=SELECTIVE)
    assert equal(trained(SELECTIVE, made, joins=joins, done=last), through)


def killed_in(number: int, made: Wire, **options: Any) -> Progress | None:
    """Train until the server is killed in a round; its last saved progress."""
    saved: list[Progress] = []

    def each(progress: Progress) -> None:
        if progress.round == number:
            raise KeyboardInterrupt
        saved.append(progress)

    with pytest.raises(KeyboardInterrupt):
        trained(options.pop("algorithm"), made, each=each, **options)
    return saved[-1] if saved else None


def test_a_round_that_is_repeated_with_other_updates_is_scored_again(make_client: Any, tmp_path: Path) -> None:
    """Two of three updates suffice. A's reply is lost, the others are averaged and scored, and the server is killed."""
    rules = Tolerance(minimum=2)
    through = trained(FEDAVG, wire(FEDAVG, three(make_client), tmp_path / "through"), 2, rules=rules)
    made = wire(FEDAVG, three(make_client), tmp_path / "killed", lost)
    assert killed_in(1, made, algorithm=FEDAVG, rounds=2, rules=rules) is None
    # Now A's reply is there: nodes have scored a model of round 1 that was never saved.
    assert equal(trained(FEDAVG, made, 2, rules=rules), through)
    best, rows = made.nodes["A"]._engine.private.best, [row for row in through.history if row.client == "A"]
    assert all(own["A"].loss == min(row.loss_of(owner) for row in rows) for owner, own in best.items())


def test_a_slow_clients_losses_are_left_out_if_a_round_does_not_need_it(make_client: Any, tmp_path: Path) -> None:
    """A answers neither the training nor the score of round 1; in round 2 it is sent both models."""
    made = wire(FEDAVG, three(make_client), tmp_path, silent, unchanged, unchanged, silent)
    progress = trained(FEDAVG, made, 2, rules=Tolerance(minimum=2, deadline=0.2))
    assert [(row.round, row.client) for row in progress.history] == [(1, "B"), (1, "C"), (2, "A"), (2, "B"), (2, "C")]
    assert all(row.server_validation_loss is not None for row in progress.history)


class Slow(Wire):
    """C's trainings are answered after all others; meanwhile nothing is sent to C."""

    def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
        assert name != "C" or all(message.name != "C" for message in self._arrived)
        super().send(name, nonce, header, body)

    def receive(self, seconds: float | None) -> Delivered | Undelivered | None:
        self._arrived = deque(sorted(self._arrived, key=lambda one: one.name == "C" and '"train"' in one.header))
        return super().receive(seconds)


def test_a_buffer_does_not_wait_for_a_busy_clients_losses(make_client: Any, tmp_path: Path) -> None:
    """A and B fill a buffer of two in each round, while C still trains in its first."""
    algorithm = build("FedBuff", buffer=2)
    progress = trained(algorithm, Slow(nodes(algorithm, three(make_client), tmp_path)), 3)
    assert {row.client for row in progress.history} == {"A", "B"}
