"""The processes of a site: restarted when they die, stopped with their children, and told from other programs."""

import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import psutil
import pytest

from chaos.sites import INNER, PORT, STATE, is_running, wait_until
from pipeline.errors import QuorumError
from pipeline.federation import certificates, site_commands
from pipeline.federation.flower.commands import APP, flower, server_programs
from pipeline.federation.processes import Program, Supervisor
from pipeline.federation.server import _wait_for
from pipeline.federation.site import ServerSite
from pipeline.workspace.files import write_text

SLEEPING = [sys.executable, "-c", "import time; time.sleep(60)"]
Left = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def left_over() -> Iterator[Left]:
    """(folder, name) -> a program that works there, with its process id in this site's folder."""
    started: list[subprocess.Popen[bytes]] = []

    def start(folder: Path = Path(), name: str = "supernode") -> subprocess.Popen[bytes]:
        folder.mkdir(exist_ok=True)
        started.append(subprocess.Popen(SLEEPING, cwd=folder, start_new_session=True))
        write_text(STATE / f"{name}.pid", f"{started[-1].pid}\n")
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("ended", ["killed", "closed"])
def test_a_program_is_started_again_and_its_children_end_with_it(here: Path, ended: str) -> None:
    """A child that ignores SIGTERM ends when the program is killed, or the supervisor closed."""
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    start = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {stubborn!r}])"
    number, log = here / "parent.pid", here / "parent.log"
    with Supervisor(here) as supervisor:
        supervisor.start(Program("parent", [sys.executable, "-c", f"{start}; print(p.pid, flush=True); p.wait()"]))
        wait_until(lambda: log.is_file() and log.read_text().strip(), 10, "a child")
        child, first = psutil.Process(int(log.read_text().split()[0])), int(number.read_text())
        if ended == "killed":
            os.kill(first, 9)
            wait_until(lambda: not is_running(child), 10, "the child's end")
            wait_until(lambda: int(number.read_text()) != first, 10, "a second process")
        last = int(number.read_text())
        assert psutil.pid_exists(last)
    wait_until(lambda: not is_running(child), 10, "the child's end")
    assert not psutil.pid_exists(last)
    assert not number.exists()


@pytest.mark.parametrize("hidden", [False, True], ids=["its folder is known", "its folder is hidden"])
def test_what_a_killed_site_left_is_killed(left_over: Left, monkeypatch: pytest.MonkeyPatch, hidden: bool) -> None:
    """At its next start. Flower's programs hide their folder from any user but root, not when they started."""

    def cwd(process: psutil.Process) -> str:
        raise psutil.AccessDenied(process.pid)

    process = left_over()
    if hidden:
        monkeypatch.setattr(psutil.Process, "cwd", cwd)
    with site_commands.running_site():
        assert process.wait(10) == -9
        assert not (STATE / "supernode.pid").exists()


def test_a_process_id_that_belongs_to_another_program_now_is_left_alone(left_over: Left) -> None:
    process = left_over(Path("elsewhere"))
    with site_commands.running_site():
        assert process.poll() is None


def test_a_site_that_runs_is_not_started_again(left_over: Left) -> None:
    left_over(name="site")
    with pytest.raises(QuorumError, match="this site runs already"), site_commands.running_site():
        pass


SIZES = """
import os
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from relay import content_of
print(*(len(one.deflate()) for one in get_all_nested_objects(content_of("{}", os.urandom(200_000_000))).values()))
"""
"""Prints the bytes of each object in which Flower sends an adapter of 200 MB, a request each."""


class SuperLink(BaseHTTPRequestHandler):
    """Reads what it is sent, and agrees."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="left out: nginx is not on PATH")
def test_an_adapter_of_200_megabytes_passes_the_proxy() -> None:
    """A request of more than 16 MB does not. Flower's objects have at most 4 MB, whatever the adapter's size."""
    certificates.make_authority()
    certificates.make_server_certificate("127.0.0.1")
    common = {"run": "r", "seed": 1, "host": "127.0.0.1", "port": PORT, "inner_port": INNER}
    *_, proxy = server_programs(ServerSite(kind="server", organisations=["University"], **common))
    command = [flower("python"), "-c", SIZES]
    printed = subprocess.run(command, env={"PYTHONPATH": str(APP)}, capture_output=True, text=True)
    sizes = [int(size) for size in printed.stdout.split()]
    assert sum(sizes) > 200_000_000, printed.stderr
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.SERVER, certificates.SERVER_KEY)
    with ThreadingHTTPServer(("127.0.0.1", INNER), SuperLink) as superlink, Supervisor(STATE) as supervisor:
        superlink.socket = context.wrap_socket(superlink.socket, server_side=True)
        Thread(target=superlink.serve_forever, daemon=True).start()
        supervisor.start(proxy)
        _wait_for(PORT)
        trusting = ssl.create_default_context(cafile=str(certificates.AUTHORITY))
        connection = HTTPSConnection("127.0.0.1", PORT, timeout=60, context=trusting)

        def status(body: bytes, announced: int) -> int:
            connection.request("POST", "/v1/fleet/push-object", body, {"Content-Length": str(announced)})
            with connection.getresponse() as response:
                return response.status

        assert {status(bytes(size), size) for size in sizes} == {200}
        assert status(b"", (16 << 20) + 1) == 413
        superlink.shutdown()
