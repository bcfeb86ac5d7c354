"""The command lines of Flower's programs on each site, and the configuration of the server's proxy."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from string import Template

from pipeline.errors import QuorumError
from pipeline.federation.certificates import AUTHORITY, SERVER, SERVER_KEY, write_private
from pipeline.federation.processes import Program
from pipeline.federation.site import ALLOWED, KEYS, STATE, NodeSite, ServerSite, socket_path
from pipeline.workspace.files import write_text

HERE = Path(__file__).parent
APP = HERE / "app"
CONNECTION = "quorum"
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "OMP_NUM_THREADS": "1"}
POLLS = "FLWR_SUPEREXEC_TASK_POLL_INTERVAL"
"""Seconds between an executor's polls. The server's starts a relay in hours, a node's one for every message."""


def flower(program: str) -> str:
    """The path of one of Flower's programs. Raises QuorumError if Flower's environment is not set up."""
    folder = Path(os.environ.get("QUORUM_FLOWER") or Path(__file__).parents[3] / ".venv-flower")
    path = folder / "bin" / program
    if not path.is_file():
        raise QuorumError(f"{path}: is missing; `make setup-flower` installs Flower into a separate environment")
    return str(path)


def server_programs(site: ServerSite) -> list[Program]:
    """SuperLink, SuperExec and proxy, in the order in which they start. Their files are written first.

    The SuperLink's database begins empty, so it knows only the keys that are listed now. Answers that were not fetched
    are lost, and the training sends their requests again.
    """
    state, inner = STATE.resolve(), f"127.0.0.1:{site.inner_port}"
    _create_database(state / "superlink.db")
    secret = _secret("server")
    listen = "127.0.0.1" if site.host == "127.0.0.1" else "0.0.0.0"
    files = {"certificate": SERVER.resolve(), "key": SERVER_KEY.resolve(), "authority": AUTHORITY.resolve()}
    proxy = Template((HERE / "nginx.conf.template").read_text(encoding="utf-8"))
    ports = {"listen": listen, "port": site.port, "inner_port": site.inner_port}
    write_text(state / "nginx.conf", proxy.substitute(files | ports, state=state))
    tls = ["--ssl-ca-certfile", str(AUTHORITY), "--ssl-certfile", str(SERVER), "--ssl-keyfile", str(SERVER_KEY)]
    superlink = [
        *(flower("flower-superlink"), "--host", "127.0.0.1", "--port", str(site.inner_port), *tls),
        *("--database", str(state / "superlink.db"), "--disable-runtime-dependency-installation"),
        *("--enable-supernode-auth", "--isolation", "process", "--superexec-auth-secret-file", str(secret)),
    ]
    superexec = [
        *(flower("flower-superexec"), "--runtime-api-address", inner, "--root-certificates", str(AUTHORITY)),
        *("--superexec-auth-secret-file", str(secret)),
    ]
    return [
        Program("superlink", superlink, _environment("superlink")),
        Program("superexec", superexec, _environment("superexec") | {POLLS: "0.5"}),
        Program("nginx", ["nginx", "-p", str(state), "-c", str(state / "nginx.conf"), "-e", "stderr"]),
    ]


def node_programs(site: NodeSite) -> list[Program]:
    """SuperNode, and the executor, which checks the app against allowed.txt and starts it for each message."""
    secret, config = _secret("node"), f'name="{site.organisation}" socket="{socket_path("worker")}"'
    supernode = [
        *(flower("python"), str(HERE / "supernode.py"), "--superlink", f"{site.host}:{site.port}"),
        *("--root-certificates", str(AUTHORITY), "--host", "127.0.0.1", "--port", str(site.inner_port)),
        *("--auth-supernode-private-key", str(KEYS / site.organisation), "--isolation", "process"),
        *("--superexec-auth-secret-file", str(secret), "--node-config", config),
    ]
    executor = [
        *(flower("python"), str(HERE / "executor.py"), "--runtime-api-address", f"127.0.0.1:{site.inner_port}"),
        *("--insecure", "--superexec-auth-secret-file", str(secret)),
    ]
    allowed = {"QUORUM_ALLOWED_APPS": str(ALLOWED.resolve()), POLLS: "0.05"}
    first = Program("supernode", supernode, _environment("supernode"))
    return [first, Program("executor", executor, _environment("executor") | allowed)]


def register(site: ServerSite) -> None:
    """Register the organisations' keys with the SuperLink.

    Raises QuorumError if a key is missing, or the SuperLink does not answer.
    """
    _connect(site)
    for name in site.organisations:
        key = KEYS / f"{name}.pub"
        if not key.is_file():
            raise QuorumError(f"{key}: is missing; ask {name} for the file that `federation certificates` made there")
        _, printed = _run("flwr", "supernode", "register", str(key), CONNECTION, "--name", name, "--format", "json")
        if '"success": true' not in printed and "already" not in printed:
            raise QuorumError(f"{key}: Flower did not take it ({printed[-200:]}); is it an ECDSA key?")


def submit(socket: Path) -> None:
    """Start the relay at the server, which connects to this socket. Raises QuorumError if the SuperLink refuses it."""
    _, printed = _run("flwr", "run", str(APP), CONNECTION, "--format", "json", "--run-config", f'socket="{socket}"')
    if '"success": true' not in printed:
        raise QuorumError(f"federation: Flower did not start the relay ({printed[-200:]})")


def app_digest() -> str:
    """The sha256 of the app as nodes receive it: a line of their allowed.txt.

    Raises QuorumError if Flower cannot pack the app.
    """
    code = (
        "import hashlib, sys; from pathlib import Path; from flwr.cli.build import build_fab_from_disk; "
        "print(hashlib.sha256(build_fab_from_disk(Path(sys.argv[1]))).hexdigest())"
    )
    done, printed = _run("python", "-c", code, str(APP))
    if done.returncode:
        raise QuorumError(f"{APP}: Flower cannot pack it ({printed[-200:]})")
    return done.stdout.split()[-1]


def _create_database(path: Path) -> None:
    """Create an empty database that shrinks when rows are deleted. The one that Flower creates never shrinks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f"{path.name}*"):
        old.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA auto_vacuum = FULL")
        database.execute("VACUUM")


def _connect(site: ServerSite) -> None:
    """Write the SuperLink's address for Flower's command line."""
    lines = [
        *("[superlink]", f'default = "{CONNECTION}"', f"[superlink.{CONNECTION}]"),
        f'address = "127.0.0.1:{site.inner_port}"',
        f"root-certificates = {json.dumps(str(AUTHORITY.resolve()))}",
    ]
    write_text(Path(_environment("cli")["FLWR_HOME"]) / "config.toml", "\n".join(lines) + "\n")


def _run(program: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run one of Flower's programs to its end; also all that it printed, as one line."""
    command, environment = [flower(program), *arguments], os.environ | _environment("cli")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done, " ".join((done.stdout + done.stderr).split())


def _environment(program: str) -> dict[str, str]:
    """The environment of one of Flower's programs, with a separate FLWR_HOME."""
    home = STATE.resolve() / "flower" / program
    home.mkdir(parents=True, exist_ok=True)
    path = f"{Path(flower('python')).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**QUIET, "FLWR_HOME": str(home), "PATH": path}


def _secret(name: str) -> Path:
    """The file with the secret that a SuperLink or SuperNode shares with its executor; written once."""
    path = STATE / f"{name}.secret"
    if not path.is_file():
        write_private(path, f"{secrets.token_hex(32)}\n".encode())
    return path
