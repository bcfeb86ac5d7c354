"""A federation for each test, laid out once; and what an undisturbed training of the same order leaves."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from laying import Simulation, lay_out
from sites import SELECT, Federation

TOLD: list[str] = []
"""A line a fault: what was broken, and what was lost."""


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """With a path that leaves room for the names of sockets; QUORUM_KEEP_CHAOS leaves it there, to be looked at."""
    made = Path(mkdtemp(prefix="qc"))
    yield made
    if "QUORUM_KEEP_CHAOS" not in os.environ:
        shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def laid(folder: Path) -> Path:
    lay_out(folder / "laid")
    return folder / "laid"


@pytest.fixture(scope="session")
def simulation(folder: Path) -> Simulation:
    return Simulation(folder / "simulated")


@pytest.fixture(scope="session")
def undisturbed(simulation: Simulation) -> dict[str, Any]:
    return simulation.outcome()


@pytest.fixture
def federation_of(laid: Path, folder: Path) -> Iterator[Callable[[str], Federation]]:
    """A run's name -> sites in folders of their own, laid anew and not started yet."""
    made: list[Federation] = []

    def lay(run: str) -> Federation:
        shutil.rmtree(folder / "run", ignore_errors=True)
        shutil.copytree(laid, folder / "run")
        made.append(Federation(folder / "run", run))
        return made[-1]

    yield lay
    for one in made:
        one.close()


@pytest.fixture
def federation(federation_of: Callable[[str], Federation]) -> Federation:
    return federation_of(SELECT)


@pytest.fixture
def ends_alike(federation: Federation, undisturbed: dict[str, Any]) -> Callable[[str, str], None]:
    """Wait until it is trained, and compare; what was broken and how often is told below the results of all tests."""
    began = time.monotonic()

    def check(broken: str, often: str) -> None:
        federation.wait_until_trained()
        assert federation.outcome() == undisturbed
        again = ", ".join(f"{count} of {name}" for name, count in federation.trained_again().items()) or "none"
        seconds = time.monotonic() - began
        TOLD.append(f"{broken}: {often}; trainings made again: {again}; the same bits after {seconds:.0f} s")

    return check


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if TOLD:
        terminalreporter.section("faults")
    for line in TOLD:
        terminalreporter.write_line(line)
