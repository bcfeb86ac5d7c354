"""Snapshots of the pipeline, and a prepared federation for each test with the undisturbed training to compare with."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from chaos.sites import SELECT, Federation, Simulation, prepare_sites
from chaos.snapshots import Snapshots


@pytest.fixture(scope="session")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    return Snapshots(tmp_path_factory.mktemp("snapshots"))


@pytest.fixture(scope="session")
def mounts() -> None:
    """CLONE_NEWNS: mounts of their own for this process and its children, from now on."""
    if ctypes.CDLL(None).unshare(0x20000) or subprocess.run(["mount", "--make-rprivate", "/"]).returncode:
        pytest.skip("left out: this user may not mount a small disk")


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder with a path short enough for sockets. QUORUM_KEEP_CHAOS keeps it."""
    created = Path(mkdtemp(prefix="qc"))
    yield created
    if "QUORUM_KEEP_CHAOS" not in os.environ:
        shutil.rmtree(created, ignore_errors=True)


@pytest.fixture(scope="session")
def prepared(folder: Path) -> Path:
    prepare_sites(folder / "prepared")
    return folder / "prepared"


@pytest.fixture(scope="session")
def simulation(folder: Path) -> Simulation:
    return Simulation(folder / "simulated")


@pytest.fixture(scope="session")
def undisturbed(simulation: Simulation) -> dict[str, Any]:
    return simulation.outcome(SELECT)


@pytest.fixture
def federation_of(prepared: Path, folder: Path) -> Iterator[Callable[[str], Federation]]:
    """Run -> a federation in fresh folders, not started yet."""
    created: list[Federation] = []

    def create(run: str) -> Federation:
        shutil.rmtree(folder / "run", ignore_errors=True)
        created.append(Federation(shutil.copytree(prepared, folder / "run"), run))
        return created[-1]

    yield create
    for one in created:
        one.close()


@pytest.fixture
def federation(federation_of: Callable[[str], Federation]) -> Federation:
    return federation_of(SELECT)
