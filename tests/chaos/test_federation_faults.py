"""A deployed federation in which something breaks ends with the bits of an undisturbed training.

University waits in the middle of its training in round 2, or the server after it has written round 2, until something
is broken. Only what was begun and not written is computed again.
"""

import asyncio
import os
import signal
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing import get_context
from typing import Any

import psutil
import pytest

from chaos.disks import small_disk
from chaos.sites import PORT, STATE, Federation, Simulation, Site, wait_until

pytestmark = pytest.mark.timeout(400)
ONCE = {"University": 1}
CUT_PORT, CUT_SECONDS, AWAY_SECONDS = 21444, 30.0, 10.0
Outcome = dict[str, Any]


def kill_program(name: str) -> Callable[[Site], None]:
    return lambda site: os.kill(site.pid(name), signal.SIGKILL)


def kill_relay(server: Site) -> None:
    executor = psutil.Process(server.pid("superexec"))
    (relay,) = [one for one in executor.children() if any("flwr-serverapp" in word for word in one.cmdline())]
    relay.kill()


@pytest.mark.parametrize(
    ("at", "name", "kill", "again", "logged"),
    [
        ("training", "University", Site.kill, ONCE, ""),
        ("training", "University", Site.kill_itself, ONCE, "supernode is left over"),
        ("training", "University", kill_program("supernode"), {}, ""),
        ("training", "server", Site.kill, {}, "resuming after round 1"),
        ("training", "server", kill_program("superlink"), {}, ""),
        ("training", "server", kill_relay, {}, ""),
        ("round", "University", Site.kill, {}, ""),
    ],
    ids=["node", "node's own process", "SuperNode", "server", "SuperLink", "Flower's relay", "node between rounds"],
)
def test_a_kill_in_a_step_repeats_that_step_at_most(
    federation: Federation, undisturbed: Outcome, at: str, name: str, kill: Callable[[Site], None],
    again: dict[str, int], logged: str,
) -> None:  # fmt: skip
    waiting, site = federation.start_until(at), federation.sites[name]
    kill(site)
    waiting.go_on()
    if kill in (Site.kill, Site.kill_itself):
        site.start()
    assert federation.outcome() == undisturbed
    assert federation.trained_again() == again
    assert logged in site.log()


def test_a_stopped_node_is_waited_for(federation_of: Callable[[str], Federation], simulation: Simulation) -> None:
    """Its operator stops it in a training that allows no missing answer, and starts it again after a while."""
    federation = federation_of("strict")
    node = federation.start_until("training")
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
    federation.university.plan("training", "raise")
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
    with small_disk(federation.university.folder / "work/federation", 8 << 20) as disk:
        node = federation.start_until("training")
        with pytest.raises(OSError, match="No space left"):
            (disk / "filling").write_bytes(bytes(16 << 20))
        node.go_on()
        wait_until(lambda: "database or disk is full" in node.log(), 30, "University: a full disk")
        (disk / "filling").unlink()
        assert federation.outcome() == undisturbed
    why = "cannot write to its disk; its operator must free space"
    assert ("2", "University", "missing", why) in federation.events()
    assert set(federation.trained_again()) == {"University"}


async def forward(near: StreamReader, back: StreamWriter) -> None:
    with closing(back), suppress(OSError):
        far, onward = await asyncio.open_connection("127.0.0.1", PORT)
        with closing(onward):
            pairs = (near, onward), (far, back)
            await asyncio.wait([asyncio.create_task(carry(*p)) for p in pairs], return_when=asyncio.FIRST_COMPLETED)


async def carry(source: StreamReader, target: StreamWriter) -> None:
    with suppress(OSError):
        while content := await source.read(1 << 16):
            target.write(content)
            await target.drain()


async def listen() -> None:
    await (await asyncio.start_server(forward, "127.0.0.1", CUT_PORT)).serve_forever()


@contextmanager
def forwarding() -> Iterator[None]:
    """A network that is cut at its end."""
    process = get_context("fork").Process(target=lambda: asyncio.run(listen()))
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def test_a_node_whose_network_is_cut_answers_when_it_is_back(federation: Federation, undisturbed: Outcome) -> None:
    federation.university.set(port=CUT_PORT)
    with forwarding():
        node = federation.start_until("training")
    node.go_on()
    time.sleep(CUT_SECONDS)
    assert federation.server.process.poll() is None
    with forwarding():
        assert federation.outcome() == undisturbed
    assert federation.trained_again() == {}
