"""`python -m pipeline federation …`: the commands of a site, which read the federation.yaml of the current folder."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Literal

import psutil

from pipeline.errors import QuorumError
from pipeline.federation.site import KEYS, SITE, STATE, NodeSite, read_site
from pipeline.workspace.files import write_text
from pipeline.workspace.progress import say

LAST_LINES = 3
STOP_SECONDS = 60.0
NOTED_SECONDS = 10.0  # most seconds between a process's start and the writing of its id
OWN = STATE / "site.pid"  # the process id of `federation server` or `federation node` itself


def certificates() -> None:
    """On a server, create the authority once and renew the certificate; on a node, create the key pair once."""
    from pipeline.federation import certificates as made

    site = read_site()
    if isinstance(site, NodeSite):
        made.make_node_key(site.organisation)
        say(f"certificates: send {KEYS / site.organisation}.pub to the server's operator; the private half stays here")
    else:
        made.make_authority()
        made.make_server_certificate(site.host)
        days = made.days_left()
        say(f"certificates: {made.SERVER} is valid for {days} days; give {made.AUTHORITY} to every organisation")


def _run(kind: Literal["server", "node"]) -> None:
    """Run this folder's server or node. Raises QuorumError if the folder is of the other kind, or the site fails."""
    site = read_site()
    if site.kind != kind:
        raise QuorumError(f"{SITE}: kind: {site.kind}; run `python -m pipeline federation {site.kind}`")
    with running_site():
        import_module(f"pipeline.federation.{kind}").run(site)


server, node = partial(_run, "server"), partial(_run, "node")


def status() -> None:
    """Print every process of this site, whether it runs, and the last lines of its log."""
    read_site()
    numbers = sorted(STATE.glob("*.pid"))
    if not numbers:
        print("nothing of this site runs")
    for number in numbers:
        print(f"{number.stem}: {'runs' if _is_running(number) else 'is gone'} (process {number.read_text().strip()})")
        log = number.with_suffix(".log")
        if log.is_file():
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]:
                print(f"    {line}")


def stop() -> None:
    """Stop the site's own process, which stops the others. Kill what is left after a minute."""
    read_site()
    if _is_running(OWN):
        os.kill(int(OWN.read_text()), signal.SIGINT)
        until = time.monotonic() + STOP_SECONDS
        while _is_running(OWN) and time.monotonic() < until:
            time.sleep(0.1)
    _kill_leftovers()
    say("federation: stopped")


def app() -> None:
    """Print the sha256 of this checkout's Flower app."""
    from pipeline.federation.flower.commands import app_digest

    print(app_digest())


@contextmanager
def running_site() -> Iterator[None]:
    """Make this process the folder's one running site. Raises QuorumError if another process already is."""
    if _is_running(OWN):
        raise QuorumError(f"{OWN}: this site runs already (process {OWN.read_text().strip()}); stop it first")
    _kill_leftovers()
    write_text(OWN, f"{os.getpid()}\n")
    before = os.umask(0o077)  # files from here on are readable by this account alone
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell ignores SIGINT for jobs started with `&`
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        os.umask(before)
        OWN.unlink(missing_ok=True)


def _kill_leftovers() -> None:
    """Kill programs of a site whose own process was killed: they still occupy its ports."""
    for number in STATE.glob("*.pid"):
        if _is_running(number):
            say(f"federation: {number.stem} is left over, and is ended")
            kill = os.kill if number == OWN else os.killpg
            with suppress(ProcessLookupError):
                kill(int(number.read_text()), signal.SIGKILL)
        number.unlink(missing_ok=True)


def _is_running(number: Path) -> bool:
    """Whether the process in a .pid file runs and belongs to this folder.

    After a reboot another program may have the same id; in a restarted container, this process or a parent of it.
    """
    try:
        process, own = psutil.Process(int(number.read_text())), psutil.Process()
        if process in (own, *own.parents()) or process.status() == psutil.STATUS_ZOMBIE:
            return False
        try:
            return Path(process.cwd()) == Path.cwd()
        except psutil.AccessDenied:  # Flower's programs hide their folder: compare start times
            return bool(abs(process.create_time() - number.stat().st_mtime) < NOTED_SECONDS)
    except (FileNotFoundError, psutil.Error, ValueError):
        return False
