"""Who and what a deployed federation turns away: at once, in words that an operator can act upon.

A server lists University and Council, and waits for them; whoever comes is not who it waits for.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest
from laying import entered
from sites import PORT, SERVER, STATE, Site, wait_until

from pipeline.federation import certificates
from pipeline.federation.flower.commands import APP, QUIET, flower
from pipeline.federation.site import ALLOWED, KEYS

pytestmark = pytest.mark.timeout(300)
UP_SECONDS, BOUND = 90.0, 60.0
"""Until the server is up, and until a refusal is told at the latest, on a machine with other work."""
OTHER_PORT, OTHER_INNER, CLIENT_PORT = 21445, 21002, 21109
MESSAGE = b""
"""What Flower reads as a message without any field."""


@pytest.fixture(scope="module")
def server(laid: Path, folder: Path) -> Iterator[Site]:
    """One that waits, and never trains."""
    site = copied(laid, folder / "waiting", SERVER)
    site.set(organisations=["University", "Council"])
    site.start()
    try:
        wait_until(lambda: "waiting for University, Council" in site.log(), UP_SECONDS, "the server")
        yield site
        assert site.code is None, site.log()[-600:]  # whom it turns away does it no harm
    finally:
        site.kill()


@pytest.fixture
def coming(laid: Path, folder: Path, server: Site) -> Iterator[Callable[[str], Site]]:
    """Organisation -> its site, not started yet."""
    made: list[Site] = []

    def copy(name: str) -> Site:
        made.append(copied(laid, folder / "coming", name))
        return made[-1]

    yield copy
    for site in made:
        site.kill()


def copied(laid: Path, folder: Path, name: str) -> Site:
    shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(laid / name, folder / name)
    return Site(folder / name)


def said(site: Site, program: str, words: str) -> None:
    """The site's program, or its own process, says so."""
    log = f"{site.name}: {words!r} in {program or 'site'}.log"
    wait_until(lambda: words in site.log(program), UP_SECONDS + BOUND, log)


def test_a_node_with_a_wrong_key_is_turned_away(coming: Callable[[str], Site], server: Site) -> None:
    node = coming("University")
    for half in (node.folder / KEYS).iterdir():
        half.unlink()
    with entered(node.folder):
        certificates.make_node_key("University")
    node.start()
    said(node, "supernode", "[code: 2004] Failed to activate SuperNode.")
    said(server, "superlink", "No SuperNode found with the given public key.")
    said(node, "", "supernode: ended with 1; is started again in 0.5 s; see supernode.log")


def test_an_organisation_that_the_server_does_not_list_is_turned_away(coming: Callable[[str], Site]) -> None:
    node = coming("Company")
    node.start()
    said(node, "supernode", "[code: 2004] Failed to activate SuperNode.")


def test_a_node_that_trusts_another_authority_does_not_speak(coming: Callable[[str], Site], folder: Path) -> None:
    node = coming("University")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    with entered(elsewhere):
        certificates.make_authority()
    shutil.copyfile(elsewhere / certificates.AUTHORITY, node.folder / certificates.AUTHORITY)
    node.start()
    said(node, "supernode", "CERTIFICATE_VERIFY_FAILED")


def test_a_node_without_a_key_is_not_started(coming: Callable[[str], Site]) -> None:
    node = coming("University")
    (node.folder / KEYS / "University").unlink()
    node.start()
    assert node.wait(BOUND) == 1
    assert node.log().strip().splitlines()[-1] == (
        "error: federation/keys/University: is missing or empty; run `python -m pipeline federation certificates`"
    )


def test_a_client_without_a_key_is_turned_away(server: Site) -> None:
    done = client(server.folder, "--root-certificates", str(server.folder / certificates.AUTHORITY))
    assert done.returncode
    assert "[code: 2001]" in done.stdout


def test_a_client_without_tls_is_turned_away(server: Site) -> None:
    done = client(server.folder, "--insecure")
    assert done.returncode
    assert "400 Bad Request" in done.stdout


def test_the_proxy_tells_a_client_without_tls_so(server: Site) -> None:
    connection = HTTPConnection("127.0.0.1", PORT, timeout=BOUND)
    connection.request("POST", "/v1/fleet/activate-node", MESSAGE)
    answer = connection.getresponse()
    assert answer.status == 400
    assert b"The plain HTTP request was sent to HTTPS port" in answer.read()


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        *("/v1/control", "/v1/control/list-runs", "/v1/control/start-run", "/v1/control/register-node"),
        *("/v1/runtime", "/v1/runtime/pull-task-input", "/v1/fleet/../control/list-runs"),
        *("/v1/fleet/%2e%2e/control/list-runs", "/", "/health"),
    ],
)
def test_what_is_not_for_nodes_is_not_there_from_outside(server: Site, method: str, path: str) -> None:
    assert asked(server, method, path) == 404


@pytest.mark.parametrize(("method", "status"), [("GET", 403), ("POST", 401)])
def test_what_is_for_nodes_is_for_signed_messages_alone(server: Site, method: str, status: int) -> None:
    assert asked(server, method, "/v1/fleet/activate-node") == status


def test_a_server_that_lacks_an_organisations_key_says_whom_to_ask(laid: Path, folder: Path) -> None:
    site = elsewhere(laid, folder, SERVER)
    (site.folder / KEYS / "Council.pub").unlink()
    try:
        site.start()
        assert site.wait(UP_SECONDS) == 1
        last = site.log().strip().splitlines()[-1]
        assert "federation/keys/Council.pub: is missing; ask Council for the file" in last
    finally:
        site.kill()


def test_an_app_that_a_node_does_not_allow_is_not_run(laid: Path, folder: Path) -> None:
    """It would leave a trace as soon as it is imported, as it does at the server, whose operator has changed it."""
    server, node = elsewhere(laid, folder, SERVER), elsewhere(laid, folder, "University")
    server.set(organisations=["University"])
    traces = folder / "traces"
    traces.mkdir()
    alter(server.folder / "chaos/app", traces)
    try:
        server.start()
        node.start()
        assert server.wait(UP_SECONDS + BOUND) == 1
        assert "hello: University has code 1 of Flower; look at its node" in server.log().strip().splitlines()[-1]
        said(node, "executor", f"is not in {(node.folder / ALLOWED).resolve()}")
        assert [path.name for path in traces.iterdir()] == [SERVER]
        assert not (node.folder / STATE / "flower/executor/apps").exists()
    finally:
        node.kill()
        server.kill()


def elsewhere(laid: Path, folder: Path, name: str) -> Site:
    """A site on ports beside those of the server that waits."""
    site = copied(laid, folder / "elsewhere-sites", name)
    site.set(port=OTHER_PORT, **({"inner_port": OTHER_INNER} if name == SERVER else {}))
    return site


def alter(app: Path, traces: Path) -> None:
    """The app, and what it does besides: a file named after the site that imports it."""
    shutil.copytree(APP, app)
    with (app / "relay.py").open("a", encoding="utf-8") as relay:
        relay.write(f"\nfrom pathlib import Path\n\n(Path({str(traces)!r}) / Path.cwd().name).touch()\n")


def asked(server: Site, method: str, path: str) -> int:
    """The proxy's status."""
    trusting = ssl.create_default_context(cafile=str(server.folder / certificates.AUTHORITY))
    connection = HTTPSConnection("127.0.0.1", PORT, timeout=BOUND, context=trusting)
    form = {"Content-Type": "application/protobuf"}
    connection.request(method, path, MESSAGE if method == "POST" else None, form)
    return connection.getresponse().status


def client(folder: Path, *trust: str) -> subprocess.CompletedProcess[str]:
    """A SuperNode as Flower ships it, without a key.

    Raises:
        TimeoutExpired: it is not turned away in time.
    """
    command = [
        *(flower("flower-supernode"), "--superlink", f"127.0.0.1:{PORT}", "--isolation", "process", *trust),
        *("--host", "127.0.0.1", "--port", str(CLIENT_PORT)),
    ]
    home = {"FLWR_HOME": str(folder / "client")}
    return subprocess.run(
        command,
        env={**os.environ, **QUIET, **home},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BOUND,
        check=False,
    )
