"""A deployed federation in which something breaks ends with the bits of an undisturbed training.

University waits in the middle of its training in round 2, or the server after it has written round 2, until something
is broken. Only what was begun and not written is computed again.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaos.prepared_sites import Simulation
from chaos.sites import PORT, STATE, Federation, Site, wait_until
from chaos.small_disks import small_disk

pytestmark = pytest.mark.timeout(400)
ONCE = {"University": 1}
CUT_PORT, CUT_SECONDS = 21444, 30.0
AWAY_SECONDS = 10.0
Outcome = dict[str, Any]


@pytest.fixture
def in_a_step(federation: Federation) -> Federation:
    """University is in the middle of its training in round 2."""
    federation.university.plan("training", 2)
    federation.start()
    federation.university.wait_until_met()
    return federation


def kill_program(name: str) -> Callable[[Site], None]:
    return lambda site: os.kill(site.pid(name), signal.SIGKILL)


def kill_relay(server: Site) -> None:
    executor = psutil.Process(server.pid("superexec"))
    (relay,) = [one for one in executor.children() if any("flwr-serverapp" in word for word in one.cmdline())]
    relay.kill()


@pytest.mark.parametrize(
    ("name", "kill", "starts", "again", "logged"),
    [
        ("University", Site.kill, True, ONCE, ""),
        ("University", Site.kill_itself, True, ONCE, "supernode is left over"),
        ("University", kill_program("supernode"), False, {}, ""),
        ("server", Site.kill, True, {}, "resuming after round 1"),
        ("server", kill_program("superlink"), False, {}, ""),
        ("server", kill_relay, False, {}, ""),
    ],
    ids=["a node", "a node's own process", "a SuperNode", "the server", "the SuperLink", "Flower's relay"],
)
def test_a_kill_in_a_step_repeats_that_step_at_most(
    in_a_step: Federation, undisturbed: Outcome, name: str, kill: Callable[[Site], None], starts: bool,
    again: dict[str, int], logged: str,
) -> None:  # fmt: skip
    site = in_a_step.sites[name]
    kill(site)
    in_a_step.university.go_on()
    if starts:
        site.start()
    assert in_a_step.outcome() == undisturbed
    assert in_a_step.trained_again() == again
    assert logged in site.log()


def test_a_node_that_is_killed_between_rounds_repeats_nothing(federation: Federation, undisturbed: Outcome) -> None:
    federation.server.plan("round", 2)
    federation.start()
    federation.server.wait_until_met()
    federation.university.kill()
    federation.server.go_on()
    federation.university.start()
    assert federation.outcome() == undisturbed
    assert federation.trained_again() == {}


def test_a_node_that_its_operator_stops_is_waited_for_without_any_rule(
    federation_of: Callable[[str], Federation], simulation: Simulation
) -> None:
    """It stops in a training that allows no missing answer, and starts again after a while."""
    federation = federation_of("strict")
    node = federation.university
    node.plan("training", 2)
    federation.start()
    node.wait_until_met()
    node.stop()
    time.sleep(AWAY_SECONDS)
    node.start()
    assert federation.outcome() == simulation.outcome("strict")
    assert federation.events() == []


def test_a_removed_organisation_is_refused(federation: Federation) -> None:
    """The server lists its key at its first start, and not at its second."""
    server, node = federation.server, federation.university
    server.start()
    node.start()
    wait_until((node.folder / STATE / "flower/supernode/node_id").is_file, 60, "University accepted")
    server.stop()
    node.stop()
    server.set(organisations=["Council", "Company"])
    server.start()
    node.start()
    wait_until(lambda: "code: 2004" in node.log("supernode"), 60, "University refused")


def test_a_training_that_raises_is_repeated(federation: Federation, undisturbed: Outcome) -> None:
    federation.university.plan("training", 2, "raise")
    federation.start()
    assert federation.outcome() == undisturbed
    assert "RuntimeError('a fault that a test has planned')" in federation.university.log()
    assert federation.events() == [
        ("2", "University", "missing", "failed; its operator's log says why"),
        ("2", "University", "repeated", "is assigned again"),
    ]
    assert federation.trained_again() == ONCE


@pytest.mark.usefixtures("mounts")
def test_a_node_whose_disk_is_full_for_a_while_repeats_its_step(federation: Federation, undisturbed: Outcome) -> None:
    node = federation.university
    node.plan("training", 2)
    with small_disk(node.folder / "work/federation", 8 << 20) as disk:
        federation.start()
        node.wait_until_met()
        with pytest.raises(OSError, match="No space left"):
            (disk / "filling").write_bytes(bytes(16 << 20))
        node.go_on()
        wait_until(lambda: "database or disk is full" in node.log(), 30, "University: a full disk")
        (disk / "filling").unlink()
        assert federation.outcome() == undisturbed
    why = "cannot write to its disk; its operator must free space"
    assert ("2", "University", "missing", why) in federation.events()
    assert set(federation.trained_again()) == {"University"}


@contextmanager
def forwarding() -> Iterator[None]:
    """A network that is cut at its end."""
    script = Path(__file__).with_name("network.py")
    process = subprocess.Popen([sys.executable, str(script), str(CUT_PORT), str(PORT)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_a_node_whose_network_is_cut_answers_when_it_is_back(federation: Federation, undisturbed: Outcome) -> None:
    node = federation.university
    node.set(port=CUT_PORT)
    node.plan("training", 2)
    with forwarding():
        federation.start()
        node.wait_until_met()
    node.go_on()
    time.sleep(CUT_SECONDS)
    assert federation.server.process.poll() is None
    with forwarding():
        assert federation.outcome() == undisturbed
    assert federation.trained_again() == {}
