"""A site's own files: what it is told, its certificates and keys, and the processes that it keeps."""

from __future__ import annotations

import datetime
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from pipeline.errors import QuorumError
from pipeline.federation import certificates, site_commands
from pipeline.federation.certificates import AUTHORITY, AUTHORITY_KEY, SERVER, SERVER_KEY
from pipeline.federation.processes import Program, Supervisor
from pipeline.federation.site import KEYS, STATE, NodeSite, ServerSite, read_site, socket_path
from pipeline.workspace.files import write_text

NODE = "{kind: node, run: fedselectkd, seed: 1, host: h, port: 1, inner_port: 2, organisation: Hospital}"
SERVED = "{kind: server, run: fedselectkd, seed: 1, host: h, port: 1, inner_port: 2, organisations: [A, B]}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(text: str) -> ServerSite | NodeSite:
    Path("federation.yaml").write_text(text, encoding="utf-8")
    return read_site()


def test_a_site_is_a_server_or_a_node() -> None:
    assert told(NODE) == NodeSite(
        kind="node", run="fedselectkd", seed=1, host="h", port=1, inner_port=2, organisation="Hospital"
    )
    served = told(SERVED)
    assert isinstance(served, ServerSite)
    assert served.organisations == ["A", "B"]


def test_scores_are_not_told_unless_the_node_says_so() -> None:
    site = told(NODE)
    assert isinstance(site, NodeSite)
    assert site.scores == "nothing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NODE.replace("seed: 1", "seed: -1"), "seed: "),
        (NODE.replace("port: 1,", "port: 70000,"), "port: "),
        (NODE.replace("Hospital", "../x"), "organisation: "),
        (NODE.replace("organisation", "organization"), "organization: unknown key"),
        (SERVED.replace("[A, B]", "[]"), "organisations: "),
        (NODE.replace("node", "both"), "kind"),
    ],
)
def test_a_wrong_site_is_one_line_that_names_the_key(text: str, message: str) -> None:
    with pytest.raises(QuorumError, match=message) as caught:
        told(text)
    assert "\n" not in str(caught.value)
    assert "docs/operating.md" in str(caught.value)


def test_a_socket_whose_path_is_too_long_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = here / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    with pytest.raises(QuorumError, match="is too long for a Unix socket"):
        socket_path("worker")


# -- certificates and keys ---------------------------------------------------------------------------------------------


def shaken_hands(authority: Path, name: str) -> str:
    """What becomes of a client that trusts an authority and asks for a name: the version of TLS."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(SERVER, SERVER_KEY)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            taken, _ = listening.accept()
            try:
                with server.wrap_socket(taken, server_side=True) as connection:
                    connection.recv(1)
            except (ssl.SSLError, OSError):
                pass

        thread = threading.Thread(target=accept)
        thread.start()
        client = ssl.create_default_context(cafile=str(authority))
        try:
            with (
                socket.create_connection(listening.getsockname()) as plain,
                client.wrap_socket(plain, server_hostname=name) as connection,
            ):
                connection.send(b"x")
                return str(connection.version())
        finally:
            thread.join()


def test_who_trusts_the_authority_trusts_the_server_by_its_names() -> None:
    certificates.make_authority()
    certificates.make_server_certificate("quorum.example.org")
    assert {shaken_hands(AUTHORITY, name) for name in ("quorum.example.org", "127.0.0.1", "localhost")} == {"TLSv1.3"}
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken_hands(AUTHORITY, "elsewhere.example.org")


def test_another_authority_is_not_trusted(here: Path) -> None:
    certificates.make_authority()
    certificates.make_server_certificate("127.0.0.1")
    other = AUTHORITY.read_bytes()
    AUTHORITY_KEY.unlink()
    certificates.make_authority()
    (here / "other.crt").write_bytes(other)
    certificates.make_server_certificate("127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken_hands(here / "other.crt", "127.0.0.1")


def test_a_renewed_certificate_needs_nothing_new_at_nodes() -> None:
    certificates.make_authority()
    held = AUTHORITY.read_bytes()
    certificates.make_server_certificate("127.0.0.1", days=1)
    assert certificates.days_left() == 0
    certificates.make_authority()
    certificates.make_server_certificate("127.0.0.1")
    assert AUTHORITY.read_bytes() == held
    assert certificates.days_left() >= 89
    assert shaken_hands(AUTHORITY, "127.0.0.1") == "TLSv1.3"


def test_the_authority_signs_and_does_nothing_else() -> None:
    certificates.make_authority()
    found = x509.load_pem_x509_certificate(AUTHORITY.read_bytes())
    assert found.extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(True, 0)
    assert found.not_valid_after_utc > datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3000)


def test_keys_are_for_their_owner_alone_and_are_made_once() -> None:
    certificates.make_authority()
    certificates.make_server_certificate("127.0.0.1")
    certificates.make_node_key("Hospital")
    private = KEYS / "Hospital"
    assert {path.stat().st_mode & 0o777 for path in (private, AUTHORITY_KEY, SERVER_KEY)} == {0o600}
    before = private.read_bytes()
    certificates.make_node_key("Hospital")
    assert private.read_bytes() == before
    public = load_ssh_public_key((KEYS / "Hospital.pub").read_bytes())
    assert load_ssh_private_key(before, None).public_key() == public


def test_a_certificate_without_an_authority_is_refused() -> None:
    with pytest.raises(QuorumError, match=r"ca\.key: is missing; run `python -m pipeline federation certificates`"):
        certificates.make_server_certificate("h")


# -- processes ---------------------------------------------------------------------------------------------------------

SLEEPING = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]


def number(state: Path, name: str) -> int:
    return int((state / f"{name}.pid").read_text())


def wait_until(what: object, seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_program_that_is_killed_is_started_again(here: Path) -> None:
    with Supervisor(here) as supervisor:
        supervisor.start(Program("one", SLEEPING))
        first = number(here, "one")
        os.kill(first, 9)
        wait_until(lambda: number(here, "one") != first)
        second = number(here, "one")
        assert psutil.pid_exists(second)
    assert not psutil.pid_exists(second)
    assert not (here / "one.pid").exists()


@pytest.mark.parametrize("ended", ["killed", "closed"])
def test_what_a_program_has_started_ends_with_it(here: Path, ended: str) -> None:
    """A child of its own, which ignores the polite signal, is gone when the program or the supervisor is."""
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    start = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {stubborn!r}])"
    parent = f"{start}; print(p.pid, flush=True); p.wait()"
    with Supervisor(here) as supervisor:
        supervisor.start(Program("parent", [sys.executable, "-c", parent]))
        log = here / "parent.log"
        wait_until(lambda: log.is_file() and log.read_text().strip())
        child = int(log.read_text().split()[0])
        assert psutil.pid_exists(child)
        if ended == "killed":
            os.kill(number(here, "parent"), 9)
            wait_until(lambda: gone(child))
    wait_until(lambda: gone(child))


def gone(child: int) -> bool:
    try:
        return bool(psutil.Process(child).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_a_program_that_is_not_there_is_one_line(here: Path) -> None:
    with Supervisor(here) as supervisor, pytest.raises(QuorumError, match="nowhere: could not be started"):
        supervisor.start(Program("one", ["nowhere"]))


def left_over(folder: Path) -> subprocess.Popen[bytes]:
    """A program of a site that works in a folder, and whose own process was killed."""
    process = subprocess.Popen(SLEEPING, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
    write_text(STATE / "supernode.pid", f"{process.pid}\n")
    return process


def test_what_a_killed_site_has_left_is_ended_when_it_starts(here: Path) -> None:
    process = left_over(here)
    with site_commands.as_site():
        assert process.wait(10) == -9
        assert not (STATE / "supernode.pid").exists()


def test_a_number_that_is_anothers_now_is_let_be(here: Path) -> None:
    (here / "elsewhere").mkdir()
    process = left_over(here / "elsewhere")
    with site_commands.as_site():
        assert process.poll() is None
    process.kill()
    process.wait()


@pytest.mark.parametrize("name", ["site", "superlink"])
def test_a_killed_containers_number_may_be_ones_own_now(here: Path, name: str) -> None:
    write_text(STATE / f"{name}.pid", f"{os.getpid()}\n")
    with site_commands.as_site():
        assert site_commands.OWN.is_file()


def test_a_program_that_hides_where_it_works_is_still_ones_own(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Flower's do from any user but root: it was started when its number was written."""

    def hidden(process: psutil.Process) -> str:
        raise psutil.AccessDenied(process.pid)

    left = left_over(here)
    monkeypatch.setattr(psutil.Process, "cwd", hidden)
    with site_commands.as_site():
        assert left.wait(10) == -9


def test_a_site_can_be_interrupted_also_where_a_shell_has_started_it_beside_others(here: Path) -> None:
    """A shell has background programs ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with site_commands.as_site(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_a_site_writes_is_for_its_own_account_alone(here: Path) -> None:
    before = os.umask(0o022)
    try:
        with site_commands.as_site():
            write_text(here / "private.txt", "words")
        assert (here / "private.txt").stat().st_mode & 0o077 == 0
    finally:
        os.umask(before)


def test_a_site_that_runs_is_not_started_again(here: Path) -> None:
    process = subprocess.Popen(SLEEPING, stdout=subprocess.DEVNULL)
    write_text(site_commands.OWN, f"{process.pid}\n")
    with pytest.raises(QuorumError, match="this site runs already"), site_commands.as_site():
        pass
    process.kill()
    process.wait()
