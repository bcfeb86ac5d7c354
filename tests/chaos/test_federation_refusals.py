"""What a deployed federation refuses: at once, in words that an operator can act upon.

The server lists University and Council and waits for them. Whatever connects is not what it waits for.
"""

import os
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from workspaces import Workspace

from chaos.sites import PORT, SERVER, STATE, Site, wait_until
from pipeline.federation import certificates
from pipeline.federation.flower.commands import APP, QUIET, flower
from pipeline.federation.site import ALLOWED, KEYS

pytestmark = pytest.mark.timeout(300)
UP_SECONDS, BOUND = 90.0, 60.0
"""The longest time until the server is up, and until a refusal, on a machine with other work."""
OTHER_PORT, OTHER_INNER, CLIENT_PORT = 21445, 21002, 21109
NOT_KNOWN = "[code: 2004] Failed to activate SuperNode."
Coming = Callable[..., Site]
WITHOUT_KEY = [
    ("University", "University", "is missing or empty; run `python -m pipeline federation certificates`"),
    (SERVER, "Council.pub", "is missing; ask Council for the file"),
]
TRUSTS = [(["--root-certificates", str(certificates.AUTHORITY)], "[code: 2001]"), (["--insecure"], "400 Bad Request")]


@pytest.fixture(scope="module")
def server(prepared: Path, folder: Path) -> Iterator[Site]:
    """A server that waits and never trains. What it refuses does it no harm."""
    site = Site(shutil.copytree(prepared / SERVER, folder / "waiting" / SERVER))
    site.set(organisations=["University", "Council"])
    site.start()
    try:
        wait_until(lambda: "waiting for University, Council" in site.log(), UP_SECONDS, "the server")
        yield site
        assert site.process.poll() is None, site.log()[-600:]
    finally:
        site.kill()


@pytest.fixture
def coming(prepared: Path, folder: Path) -> Iterator[Coming]:
    """(name, elsewhere) -> a new site; `elsewhere`: on other ports than those of the server that waits."""
    created: list[Site] = []

    def create(name: str, *, elsewhere: bool = False) -> Site:
        shutil.rmtree(folder / "coming" / name, ignore_errors=True)
        created.append(Site(shutil.copytree(prepared / name, folder / "coming" / name)))
        if elsewhere:
            created[-1].set(port=OTHER_PORT, **({"inner_port": OTHER_INNER} if name == SERVER else {}))
        return created[-1]

    yield create
    for site in created:
        site.kill()


def logs(site: Site, program: str, words: str) -> None:
    """Wait until the site's program, or its own process, logs some words."""
    what = f"{site.name}: {words!r} in {program or 'site'}.log"
    wait_until(lambda: words in site.log(program), UP_SECONDS + BOUND, what)


@pytest.mark.parametrize(
    ("name", "lost", "make", "words"),
    [
        ("University", [KEYS / "University"], lambda: certificates.make_node_key("University"), NOT_KNOWN),
        ("University", [certificates.AUTHORITY], certificates.make_authority, "CERTIFICATE_VERIFY_FAILED"),
        ("Company", [], list, NOT_KNOWN),
    ],
    ids=["another key", "another authority", "an organisation that is not listed"],
)
def test_a_node_that_the_server_or_that_itself_does_not_trust_is_refused(
    coming: Coming, server: Site, name: str, lost: list[Path], make: Callable[[], object], words: str
) -> None:
    node = coming(name)
    with Workspace(node.folder).entered():
        for path in lost:
            path.unlink()
        make()
    node.start()
    logs(node, "supernode", words)
    logs(node, "", "supernode: ended with 1; is started again in 0.5 s; see supernode.log")


@pytest.mark.parametrize(("name", "key", "message"), WITHOUT_KEY)
def test_a_site_without_a_key_is_not_started(coming: Coming, name: str, key: str, message: str) -> None:
    site = coming(name, elsewhere=True)
    (site.folder / KEYS / key).unlink()
    site.start()
    assert site.process.wait(UP_SECONDS) == 1
    assert site.log().splitlines()[-1].startswith(f"error: {KEYS / key}: {message}")


@pytest.mark.parametrize(("trust", "why"), TRUSTS, ids=["no key", "no TLS"])
def test_a_client_without_key_or_tls_is_refused(server: Site, trust: list[str], why: str) -> None:
    """A SuperNode as Flower ships it, without a key."""
    address = ["--superlink", f"127.0.0.1:{PORT}", "--isolation", "process", *trust]
    command = [flower("flower-supernode"), *address, "--host", "127.0.0.1", "--port", str(CLIENT_PORT)]
    env = {**os.environ, **QUIET, "FLWR_HOME": str(server.folder / "client")}
    done = subprocess.run(command, cwd=server.folder, env=env, capture_output=True, text=True, timeout=BOUND)
    assert done.returncode
    assert why in done.stdout + done.stderr


NOT_FOR_NODES = (
    *("/v1/control", "/v1/control/list-runs", "/v1/control/start-run", "/v1/control/register-node", "/v1/runtime"),
    *("/v1/runtime/pull-task-input", "/v1/fleet/../control/list-runs", "/v1/fleet/%2e%2e/control/list-runs"),
    *("/", "/health"),
)
REQUESTS = [
    *((method, path, 404) for method in ("GET", "POST") for path in NOT_FOR_NODES),
    ("GET", "/v1/fleet/activate-node", 403),
    ("POST", "/v1/fleet/activate-node", 401),
]


@pytest.mark.parametrize(("method", "path", "status"), REQUESTS)
def test_the_proxy_answers_signed_messages_of_nodes_alone(server: Site, method: str, path: str, status: int) -> None:
    """A Flower message without any field is empty."""
    trusting = ssl.create_default_context(cafile=str(server.folder / certificates.AUTHORITY))
    connection = HTTPSConnection("127.0.0.1", PORT, timeout=BOUND, context=trusting)
    body = b"" if method == "POST" else None
    connection.request(method, path, body, {"Content-Type": "application/protobuf"})
    assert connection.getresponse().status == status


def test_an_app_that_a_node_does_not_allow_is_not_run(coming: Coming, folder: Path) -> None:
    """The operator has changed the app: whoever imports it leaves a file. The server does, and the node does not."""
    server, node = coming(SERVER, elsewhere=True), coming("University", elsewhere=True)
    server.set(organisations=["University"])
    app, traces = server.folder / "chaos/app", folder / "traces"
    traces.mkdir()
    shutil.copytree(APP, app)
    with (app / "relay.py").open("a", encoding="utf-8") as relay:
        relay.write(f"\nfrom pathlib import Path\n\n(Path({str(traces)!r}) / Path.cwd().name).touch()\n")
    server.start()
    node.start()
    assert server.process.wait(UP_SECONDS + BOUND) == 1
    assert "hello: University has code 1 of Flower; look at its node" in server.log().splitlines()[-1]
    logs(node, "executor", f"is not in {(node.folder / ALLOWED).resolve()}")
    assert [path.name for path in traces.iterdir()] == [SERVER]
    assert not (node.folder / STATE / "flower/executor/apps").exists()
