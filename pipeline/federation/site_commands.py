"""`python -m pipeline federation …`: the pieces of a federation, each told by the federation.yaml of its folder."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from pipeline.errors import QuorumError
from pipeline.federation.site import KEYS, STATE, NodeSite, ServerSite, read_site
from pipeline.workspace.files import write_text
from pipeline.workspace.progress import say

LAST_LINES = 3
STOP_SECONDS = 60.0
NOTED_SECONDS = 10.0
"""Between a process's start and the writing of its number, at most."""
OWN = STATE / "site.pid"
"""The number of `federation server` or `federation node` itself."""


def certificates() -> None:
    """A server's authority, once, and its certificate, anew; an organisation's key pair, once."""
    from pipeline.federation.certificates import AUTHORITY, SERVER, days_left, make_authority, make_node_key
    from pipeline.federation.certificates import make_server_certificate as renew

    site = read_site()
    if isinstance(site, NodeSite):
        make_node_key(site.organisation)
        say(f"certificates: send {KEYS / site.organisation}.pub to the server's operator; keep the other half here")
        return
    make_authority()
    renew(site.host)
    say(f"certificates: {SERVER} holds for {days_left()} days; give {AUTHORITY} to every organisation")


def server() -> None:
    from pipeline.federation.server import run

    site = read_site()
    if not isinstance(site, ServerSite):
        raise QuorumError("federation.yaml: kind: node; run `python -m pipeline federation node`")
    with as_site():
        run(site)


def node() -> None:
    from pipeline.federation.node import run

    site = read_site()
    if not isinstance(site, NodeSite):
        raise QuorumError("federation.yaml: kind: server; run `python -m pipeline federation server`")
    with as_site():
        run(site)


def status() -> None:
    """Every process of this site, whether it lives, and the last lines of its log."""
    read_site()
    numbers = sorted(STATE.glob("*.pid"))
    if not numbers:
        print("nothing of this site runs")
    for number in numbers:
        print(f"{number.stem}: {'runs' if _lives(number) else 'is gone'} (process {number.read_text().strip()})")
        log = number.with_suffix(".log")
        if log.is_file():
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]:
                print(f"    {line}")


def stop() -> None:
    """End the site's own process, which ends the others; what is left after a minute is killed."""
    read_site()
    if _lives(OWN):
        os.kill(int(OWN.read_text()), signal.SIGINT)
        until = time.monotonic() + STOP_SECONDS
        while _lives(OWN) and time.monotonic() < until:
            time.sleep(0.1)
    _end_what_is_left()
    say("federation: stopped")


def app() -> None:
    from pipeline.federation.flower.commands import app_digest

    print(app_digest())


@contextmanager
def as_site() -> Iterator[None]:
    """While this process is a site's: one at a time in a folder."""
    if _lives(OWN):
        raise QuorumError(f"{OWN}: this site runs already (process {OWN.read_text().strip()}); stop it first")
    _end_what_is_left()
    write_text(OWN, f"{os.getpid()}\n")
    before = os.umask(0o077)  # what is written from here on is for this account alone
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's `&` has the former ignored
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        os.umask(before)
        OWN.unlink(missing_ok=True)


def _end_what_is_left() -> None:
    """As programs of a site whose own process was killed: they hold its ports, and nobody else will end them."""
    for number in STATE.glob("*.pid"):
        if _lives(number):
            say(f"federation: {number.stem} is left over, and is ended")
            end = os.kill if number == OWN else os.killpg
            with suppress(ProcessLookupError):
                end(int(number.read_text()), signal.SIGKILL)
        number.unlink(missing_ok=True)


def _lives(number: Path) -> bool:
    """Whether the process is there, and one of this folder's.

    After a restart of the machine, its number may be anyone's; of a container, this process's own or its parents'.
    """
    if not number.is_file():
        return False
    try:
        process, own = psutil.Process(int(number.read_text())), psutil.Process()
        if process in (own, *own.parents()) or process.status() == psutil.STATUS_ZOMBIE:
            return False
        try:
            return Path(process.cwd()) == Path.cwd()
        except psutil.AccessDenied:  # Flower's programs hide it from their own user: by when they were started
            return bool(abs(process.create_time() - number.stat().st_mtime) < NOTED_SECONDS)
    except (psutil.Error, ValueError):
        return False
