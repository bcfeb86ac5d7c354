"""A site's settings, keys and commands, and `make federation`. What starts processes is in tests/chaos."""

import datetime
import os
import signal
import ssl
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from pipeline.errors import QuorumError
from pipeline.federation import certificates, loopback, site_commands
from pipeline.federation.certificates import AUTHORITY, AUTHORITY_KEY, SERVER, SERVER_KEY
from pipeline.federation.processes import Program, Supervisor
from pipeline.federation.site import KEYS, STATE, NodeSite, ServerSite, read_site, socket_path
from pipeline.workspace.files import write_text

NODE = "{kind: node, run: fedselectkd, seed: 1, host: h, port: 1, inner_port: 2, organisation: Hospital}"
SERVED = "{kind: server, run: fedselectkd, seed: 1, host: h, port: 1, inner_port: 2, organisations: [A, B]}"
WRONG = [
    (NODE.replace("port: 1,", "port: 70000,"), "port: "),
    (NODE.replace("Hospital", "../x"), "organisation: "),
    (NODE.replace("organisation", "organization"), "organization: unknown key"),
    (SERVED.replace("[A, B]", "[]"), "organisations: "),
    (NODE.replace("node", "both"), "kind"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def site_of(text: str) -> ServerSite | NodeSite:
    Path("federation.yaml").write_text(text, encoding="utf-8")
    return read_site()


def test_a_node_reports_no_scores_by_default() -> None:
    assert site_of(NODE).model_dump()["scores"] == "nothing"


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_site_is_one_line_that_names_the_key(text: str, message: str) -> None:
    with pytest.raises(QuorumError, match=message) as caught:
        site_of(text)
    assert "\n" not in str(caught.value)
    assert "docs/operating.md" in str(caught.value)


def test_a_socket_whose_path_is_too_long_is_refused() -> None:
    with pytest.raises(QuorumError, match="is too long for a Unix socket"):
        socket_path("w" * 100)


def tls_version(authority: Path, name: str) -> str:
    """The version of TLS between the server and a client that trusts an authority and expects a name."""
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context(cafile=authority)
    server.load_cert_chain(SERVER, SERVER_KEY)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(back, there, server_hostname=name), server.wrap_bio(there, back, server_side=True)
    for end in 2 * ends:
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return str(ends[0].version())


def test_who_trusts_the_authority_trusts_the_server_by_its_names(here: Path) -> None:
    """Also after a renewal, which nodes need not hear of. Another name or authority is not trusted."""
    certificates.make_authority()
    AUTHORITY.rename(here / "other.crt")
    certificates.make_authority()
    authority = AUTHORITY.read_bytes()
    for _ in range(2):
        certificates.make_authority()
        certificates.make_server_certificate("quorum.example.org")
        names = ("quorum.example.org", "127.0.0.1", "localhost")
        assert {tls_version(AUTHORITY, name) for name in names} == {"TLSv1.3"}
    assert AUTHORITY.read_bytes() == authority
    for trusted, name in ((AUTHORITY, "elsewhere.example.org"), (here / "other.crt", "127.0.0.1")):
        with pytest.raises(ssl.SSLCertVerificationError):
            tls_version(trusted, name)


def test_a_new_certificate_is_valid_for_all_its_days(capsys: pytest.CaptureFixture[str]) -> None:
    """Not for one less, since a moment has passed. With 0 days it has expired."""
    site_of(SERVED)
    site_commands.certificates()
    assert "server.crt is valid for 90 days" in capsys.readouterr().err
    for days in (1, 0):
        certificates.make_server_certificate("127.0.0.1", days=days)
        assert certificates.days_left() == days


def test_the_authority_signs_servers_alone_for_ten_years() -> None:
    certificates.make_authority()
    found = x509.load_pem_x509_certificate(AUTHORITY.read_bytes())
    assert found.extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(True, 0)
    assert found.not_valid_after_utc > datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3649)


def test_a_program_that_is_missing_is_one_line(here: Path) -> None:
    with Supervisor(here) as supervisor, pytest.raises(QuorumError, match="nowhere: could not be started"):
        supervisor.start(Program("one", ["nowhere"]))


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


@pytest.mark.parametrize("name", ["site", "superlink"])
def test_a_process_id_from_before_a_containers_restart_may_be_this_process(name: str) -> None:
    write_text(STATE / f"{name}.pid", f"{os.getpid()}\n")
    with site_commands.running_site():
        assert site_commands.OWN.is_file()


def test_a_site_can_be_interrupted_where_a_shell_started_it_in_the_background() -> None:
    """A shell has background programs ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with site_commands.running_site(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_a_site_writes_is_for_its_own_account_alone(here: Path) -> None:
    before = os.umask(0o022)
    try:
        with site_commands.running_site():
            write_text(here / "private.txt", "words")
        assert (here / "private.txt").stat().st_mode & 0o077 == 0
    finally:
        os.umask(before)


@pytest.mark.parametrize(("works", "ends"), [(0.0, True), (1e9, False)], ids=["computing", "idle"])
def test_a_demonstration_waits_while_sites_compute(monkeypatch: pytest.MonkeyPatch, works: float, ends: bool) -> None:
    """The server ends at its tenth poll. By this clock 100 s pass at each look, and 300 without work are too many."""
    polls = iter([None] * 9)
    server: Any = SimpleNamespace(pid=os.getpid(), returncode=0, poll=lambda: next(polls, 0))
    monkeypatch.setattr(loopback, "time", SimpleNamespace(monotonic=count(0, 100).__next__, sleep=lambda _: None))
    monkeypatch.setattr(loopback, "_log", lambda *_: "")
    monkeypatch.setattr(loopback, "WORKED_SECONDS", works)
    with nullcontext() if ends else pytest.raises(QuorumError, match=r"has moved for 300 s; .* again, which continues"):
        loopback._wait(Path(), {"server": server})


@pytest.mark.parametrize(("seconds", "size"), [("2.5", 1.0), ("20", 0.25)])
def test_a_slow_first_step_makes_data_smaller(monkeypatch: pytest.MonkeyPatch, seconds: str, size: float) -> None:
    """All in steps of at most 5 s; a quarter in those of 20 s. It is measured once."""
    measured = iter([seconds])
    monkeypatch.setattr(loopback, "_command", lambda *_: next(measured))
    assert (loopback._size(Path()), loopback._size(Path())) == (size, size)
