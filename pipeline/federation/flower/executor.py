"""A node's SuperExec: it starts the relay for each message if the app's sha256 is allowed. Run by Flower's Python.

It changes flwr 1.42.0 in four ways before Flower's main function runs. It compares an app's sha256 with
QUORUM_ALLOWED_APPS before unpacking the app. It sends no text of an exception to the server. It starts only ClientApps.
It forks this process for each, since a new Python takes seconds to import Flower.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from flwr.app import Error
from flwr.clientapp.client_app import LoadClientAppError
from flwr.supercore.cli import flower_superexec
from flwr.supercore.constant import TaskType
from flwr.supercore.exit import exit_handler
from flwr.supercore.superexec import run_superexec
from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResult
from flwr.supernode.runtime import run_clientapp

unpack = run_clientapp.install_from_fab


def unpack_if_allowed(fab: bytes, *arguments: object, **named: object) -> object:
    """Flower's `install_from_fab`, for allowed apps. Raises LoadClientAppError if the app is not allowed."""
    found = hashlib.sha256(fab).hexdigest()
    lines = Path(os.environ["QUORUM_ALLOWED_APPS"]).read_text(encoding="utf-8").split()
    if found not in lines:
        print(f"refused: app {found} is not in {os.environ['QUORUM_ALLOWED_APPS']}", file=sys.stderr, flush=True)
        raise LoadClientAppError("not allowed")
    return unpack(fab, *arguments, **named)


run_clientapp.install_from_fab = unpack_if_allowed
run_clientapp.Error = lambda code, reason: Error(code, "see the node's own log")


class Forking:
    """Flower's Executor, which forks this process for each ClientApp."""

    def get_eligible_capacity(self, supported: set[str], **_: object) -> tuple[set[str], set[str]]:
        """ClientApps only."""
        return supported & {TaskType.CLIENT_APP}, set()

    def wait_for_capacity(self, *_: object, **__: object) -> None:
        """Return at once: capacity is unlimited."""

    def launch(self, spec: ExecutionSpec) -> LaunchResult:
        """Run a ClientApp in a fork."""
        if os.fork() == 0:
            os._exit(_run(spec))
        return LaunchResult.accepted()

    def reconcile(self) -> None:
        """Reap the forks that have ended."""
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _run(spec: ExecutionSpec) -> int:
    """Handle one message, in the fork; the exit status."""
    exit_handler.registered_exit_handlers.clear()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    try:
        run_clientapp.run_clientapp(
            runtime_api_address=spec.runtime_api_address,
            token=spec.token,
            insecure=spec.insecure,
            certificates=Path(spec.root_certificates_path).read_bytes() if spec.root_certificates_path else None,
            parent_pid=spec.parent_pid,
            runtime_dependency_install=False,
        )
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


run_superexec.get_executor = lambda *_, **__: Forking()
sys.exit(flower_superexec())
