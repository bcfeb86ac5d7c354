"""The processes of a site: restarted when they die, stopped with their children, and told from other programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from chaos.sites import STATE, is_running, wait_until
from pipeline.errors import QuorumError
from pipeline.federation import site_commands
from pipeline.federation.processes import Program, Supervisor
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

    def start(folder: Path, name: str = "supernode") -> subprocess.Popen[bytes]:
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
def test_programs_that_a_killed_site_left_are_killed_when_it_starts(
    here: Path, left_over: Left, monkeypatch: pytest.MonkeyPatch, hidden: bool
) -> None:
    """Flower's programs hide their folder from any user but root; they started when their process id was written."""

    def cwd(process: psutil.Process) -> str:
        raise psutil.AccessDenied(process.pid)

    process = left_over(here)
    if hidden:
        monkeypatch.setattr(psutil.Process, "cwd", cwd)
    with site_commands.running_site():
        assert process.wait(10) == -9
        assert not (STATE / "supernode.pid").exists()


def test_a_process_id_that_belongs_to_another_program_now_is_left_alone(here: Path, left_over: Left) -> None:
    process = left_over(here / "elsewhere")
    with site_commands.running_site():
        assert process.poll() is None


def test_a_site_that_runs_is_not_started_again(here: Path, left_over: Left) -> None:
    left_over(here, "site")
    with pytest.raises(QuorumError, match="this site runs already"), site_commands.running_site():
        pass
