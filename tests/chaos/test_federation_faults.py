"""A deployed federation in which something breaks, and which ends with the bits of an undisturbed training.

University waits in the middle of its training in round 2, or the server after it has written round 1 or 2 down, until
something is broken. What was begun and not written down is made again, and nothing else.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import psutil
import pytest
from conftest import TOLD
from laying import Simulation
from network import Network
from sites import PORT, STATE, Federation, wait_until

pytestmark = pytest.mark.timeout(400)
EndsAlike = Callable[[str, str], None]
"""(what was broken, how often) -> None."""
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


def test_a_node_whose_machine_dies_in_a_step_makes_that_step_again(
    in_a_step: Federation, ends_alike: EndsAlike
) -> None:
    node = in_a_step.nodes["University"]
    node.kill()
    node.start()
    ends_alike("a node's whole site killed in a step", "once")
    assert in_a_step.trained_again() == ONCE


def test_a_node_whose_machine_dies_between_rounds_loses_nothing(federation: Federation, ends_alike: EndsAlike) -> None:
    federation.server.plan("round", 2)
    federation.start()
    federation.server.wait_until_met()
    node = federation.nodes["University"]
    node.kill()
    federation.server.go_on()
    node.start()
    ends_alike("a node's whole site killed between rounds", "once")
    assert federation.trained_again() == {}


def test_a_node_whose_own_process_alone_is_killed_is_started_again(
    in_a_step: Federation, ends_alike: EndsAlike
) -> None:
    """As where memory runs out: its SuperNode and its executor are left behind."""
    node = in_a_step.nodes["University"]
    node.kill_itself()
    node.start()
    ends_alike("a node's own process alone killed in a step", "once")
    assert "federation: supernode is left over, and is ended" in node.log()
    assert in_a_step.trained_again() == ONCE


def test_a_supernode_that_is_killed_is_let_in_again(in_a_step: Federation, ends_alike: EndsAlike) -> None:
    node = in_a_step.nodes["University"]
    node.kill_program("supernode")
    node.go_on()
    ends_alike("a SuperNode killed in a step", "once")
    assert in_a_step.trained_again() == {}


def test_a_node_that_its_operator_stops_is_waited_for_without_any_rule(
    federation_of: Callable[[str], Federation], simulation: Simulation
) -> None:
    """In the middle of a training that allows no missing answer; started again after a while, it is asked again."""
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
    TOLD.append(f"a node stopped politely in a step: once, for {AWAY_SECONDS:g} s, no repeats allowed; the same bits")


def test_an_organisation_that_was_removed_is_let_in_no_more(federation: Federation) -> None:
    """Its key was listed when the server ran first, and is not when it is started again."""
    server, node = federation.server, federation.nodes["University"]
    server.start()
    node.start()
    wait_until((node.folder / STATE / "flower/supernode/node_id").is_file, 60, "University let in")
    server.stop()
    node.stop()
    server.set(organisations=["Council", "Company"])
    server.start()
    node.start()
    wait_until(lambda: "code: 2004" in node.log("supernode"), 60, "University turned away")
    TOLD.append("an organisation removed: its key is refused")


def test_an_exception_in_a_training_is_asked_again(federation: Federation, ends_alike: EndsAlike) -> None:
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


def test_a_superlink_that_is_killed_is_started_again(in_a_step: Federation, ends_alike: EndsAlike) -> None:
    in_a_step.server.kill_program("superlink")
    in_a_step.nodes["University"].go_on()
    ends_alike("the SuperLink killed in a step", "once")
    assert in_a_step.trained_again() == {}


def test_a_server_whose_machine_dies_in_a_round_goes_on_at_the_last_one(
    in_a_step: Federation, ends_alike: EndsAlike
) -> None:
    in_a_step.server.kill()
    in_a_step.nodes["University"].go_on()
    in_a_step.server.start()
    ends_alike("the server's whole site killed in a round", "once")
    assert "resuming after round 1" in in_a_step.server.log()
    assert in_a_step.trained_again() == {}


def test_a_relay_that_is_killed_is_asked_for_anew(in_a_step: Federation, ends_alike: EndsAlike) -> None:
    executor = psutil.Process(in_a_step.server.number("superexec"))
    (relay,) = [one for one in executor.children() if any("flwr-serverapp" in word for word in one.cmdline())]
    relay.kill()
    in_a_step.nodes["University"].go_on()
    ends_alike("Flower's relay at the server killed in a step", "once")
    assert in_a_step.trained_again() == {}


def test_a_node_whose_disk_is_full_for_a_while_is_asked_again(federation: Federation, ends_alike: EndsAlike) -> None:
    node = federation.nodes["University"]
    node.plan("training", 2)
    with small_disk(node.folder / "work/federation") as disk:
        federation.start()
        node.wait_until_met()
        fill(disk / "filling")
        node.go_on()
        wait_until(lambda: "database or disk is full" in node.log(), 30, "University: a full disk")
        (disk / "filling").unlink()
        ends_alike("a node's disk full", "for one answer")
    assert ("2", "University", "missing", "cannot write to its disk; its operator must free space") in (
        federation.events()
    )
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
        assert federation.server.code is None
        network.mend()
        ends_alike("the network between a node and the proxy cut", f"once, for {CUT_SECONDS:g} s")
    assert federation.trained_again() == {}


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 8 MB, which a node writes its state to."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("left out: this user may not mount a small tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Until there is no space left."""
    with path.open("wb", buffering=0) as stream, pytest.raises(OSError, match="No space left on device"):
        _write_for_ever(stream)


def _write_for_ever(stream: BinaryIO) -> None:
    while True:
        stream.write(bytes(1 << 14))
