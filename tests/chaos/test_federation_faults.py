"""A deployed federation in which something breaks ends with the bits of an undisturbed training.

University waits in the middle of its training in round 2, or the server after it has written round 2, until something
is broken. Only what was begun and not written is computed again.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from conftest import REPORT
from network import Network
from prepared_sites import Simulation
from sites import PORT, STATE, Federation, wait_until

pytestmark = pytest.mark.timeout(400)
EndsAlike = Callable[[str, str], None]
ONCE = {"University": 1}
CUT_PORT, CUT_SECONDS = 21444, 30.0
AWAY_SECONDS = 10.0


@pytest.fixture
def in_a_step(federation: Federation) -> Federation:
    """University is in the middle of its training in round 2."""
    federation.nodes["University"].plan("training", 2)
    federation.start()
    federation.nodes["University"].wait_until_met()
    return federation


def kill_node(federation: Federation) -> None:
    federation.nodes["University"].kill()
    federation.nodes["University"].start()


def kill_nodes_own_process(federation: Federation) -> None:
    federation.nodes["University"].kill_itself()
    federation.nodes["University"].start()


def kill_supernode(federation: Federation) -> None:
    federation.nodes["University"].kill_program("supernode")
    federation.nodes["University"].go_on()


def kill_superlink(federation: Federation) -> None:
    federation.server.kill_program("superlink")
    federation.nodes["University"].go_on()


def kill_server(federation: Federation) -> None:
    federation.server.kill()
    federation.nodes["University"].go_on()
    federation.server.start()


def kill_relay(federation: Federation) -> None:
    executor = psutil.Process(federation.server.pid("superexec"))
    (relay,) = [one for one in executor.children() if any("flwr-serverapp" in word for word in one.cmdline())]
    relay.kill()
    federation.nodes["University"].go_on()


@pytest.mark.parametrize(
    ("broken", "kill", "again", "whose", "logged"),
    [
        ("a node's whole site", kill_node, ONCE, "University", ""),
        ("a node's own process alone", kill_nodes_own_process, ONCE, "University", "supernode is left over"),
        ("a SuperNode", kill_supernode, {}, "University", ""),
        ("the SuperLink", kill_superlink, {}, "server", ""),
        ("the server's whole site", kill_server, {}, "server", "resuming after round 1"),
        ("Flower's relay at the server", kill_relay, {}, "server", ""),
    ],
)
def test_a_kill_in_a_step_repeats_that_step_at_most(
    in_a_step: Federation, ends_alike: EndsAlike, broken: str, kill: Callable[[Federation], None],
    again: dict[str, int], whose: str, logged: str,
) -> None:  # fmt: skip
    kill(in_a_step)
    ends_alike(f"{broken} killed in a step", "once")
    assert in_a_step.trained_again() == again
    assert logged in {"server": in_a_step.server, **in_a_step.nodes}[whose].log()


def test_a_node_that_is_killed_between_rounds_repeats_nothing(federation: Federation, ends_alike: EndsAlike) -> None:
    federation.server.plan("round", 2)
    federation.start()
    federation.server.wait_until_met()
    federation.nodes["University"].kill()
    federation.server.go_on()
    federation.nodes["University"].start()
    ends_alike("a node's whole site killed between rounds", "once")
    assert federation.trained_again() == {}


def test_a_node_that_its_operator_stops_is_waited_for_without_any_rule(
    federation_of: Callable[[str], Federation], simulation: Simulation
) -> None:
    """It stops in a training that allows no missing answer, and starts again after a while."""
    federation = federation_of("strict")
    node = federation.nodes["University"]
    node.plan("training", 2)
    federation.start()
    node.wait_until_met()
    node.stop()
    time.sleep(AWAY_SECONDS)
    node.start()
    federation.wait_until_trained()
    assert federation.outcome() == simulation.outcome("strict")
    assert federation.events() == []
    REPORT.append(f"a node stopped politely in a step: once, for {AWAY_SECONDS:g} s, no repeats allowed; the same bits")


def test_a_removed_organisation_is_refused(federation: Federation) -> None:
    """The server lists its key at its first start, and not at its second."""
    server, node = federation.server, federation.nodes["University"]
    server.start()
    node.start()
    wait_until((node.folder / STATE / "flower/supernode/node_id").is_file, 60, "University accepted")
    server.stop()
    node.stop()
    server.set(organisations=["Council", "Company"])
    server.start()
    node.start()
    wait_until(lambda: "code: 2004" in node.log("supernode"), 60, "University refused")
    REPORT.append("an organisation removed: its key is refused")


def test_a_training_that_raises_is_repeated(federation: Federation, ends_alike: EndsAlike) -> None:
    node = federation.nodes["University"]
    node.plan("training", 2, "raise")
    federation.start()
    ends_alike("an exception in a client's training", "once")
    assert "RuntimeError('a fault that a test has planned')" in node.log()
    assert federation.events() == [
        ("2", "University", "missing", "failed; its operator's log says why"),
        ("2", "University", "repeated", "is assigned again"),
    ]
    assert federation.trained_again() == ONCE


def test_a_node_whose_disk_is_full_for_a_while_repeats_its_step(federation: Federation, ends_alike: EndsAlike) -> None:
    node = federation.nodes["University"]
    node.plan("training", 2)
    with small_disk(node.folder / "work/federation") as disk:
        federation.start()
        node.wait_until_met()
        with pytest.raises(OSError, match="No space left"):
            (disk / "filling").write_bytes(bytes(16 << 20))
        node.go_on()
        wait_until(lambda: "database or disk is full" in node.log(), 30, "University: a full disk")
        (disk / "filling").unlink()
        ends_alike("a node's disk full", "for one answer")
    why = "cannot write to its disk; its operator must free space"
    assert ("2", "University", "missing", why) in federation.events()
    assert set(federation.trained_again()) == {"University"}


def test_a_node_whose_network_is_cut_answers_when_it_is_back(federation: Federation, ends_alike: EndsAlike) -> None:
    node = federation.nodes["University"]
    node.set(port=CUT_PORT)
    node.plan("training", 2)
    with Network(CUT_PORT, PORT) as network:
        federation.start()
        node.wait_until_met()
        network.cut()
        node.go_on()
        time.sleep(CUT_SECONDS)
        assert federation.server.process.poll() is None
        network.mend()
        ends_alike("the network between a node and the proxy cut", f"once, for {CUT_SECONDS:g} s")
    assert federation.trained_again() == {}


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 8 MB for a node's state."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("left out: this user may not mount a small tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
