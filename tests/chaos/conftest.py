"""A prepared federation for each test, the undisturbed training to compare with, and a report of all faults."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from prepared_sites import Simulation, prepare_sites
from sites import SELECT, Federation
from snapshots import Snapshots

REPORT: list[str] = []
"""A line for each fault: what was broken, and what was lost. Printed below the results of all tests."""


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    return Snapshots(tmp_path_factory.mktemp("snapshots"))


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
    return simulation.outcome()


@pytest.fixture
def federation_of(prepared: Path, folder: Path) -> Iterator[Callable[[str], Federation]]:
    """Run -> a federation in fresh folders, not started yet."""
    created: list[Federation] = []

    def create(run: str) -> Federation:
        shutil.rmtree(folder / "run", ignore_errors=True)
        shutil.copytree(prepared, folder / "run")
        created.append(Federation(folder / "run", run))
        return created[-1]

    yield create
    for one in created:
        one.close()


@pytest.fixture
def federation(federation_of: Callable[[str], Federation]) -> Federation:
    return federation_of(SELECT)


@pytest.fixture
def ends_alike(federation: Federation, undisturbed: dict[str, Any]) -> Callable[[str, str], None]:
    """(what was broken, how often) -> wait until the training ends, compare its bits, and report the fault."""
    began = time.monotonic()

    def check(broken: str, often: str) -> None:
        federation.wait_until_trained()
        assert federation.outcome() == undisturbed
        again = ", ".join(f"{count} of {name}" for name, count in federation.trained_again().items()) or "none"
        seconds = time.monotonic() - began
        REPORT.append(f"{broken}: {often}; trainings repeated: {again}; the same bits after {seconds:.0f} s")

    return check


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if REPORT:
        terminalreporter.section("faults")
    for line in REPORT:
        terminalreporter.write_line(line)
