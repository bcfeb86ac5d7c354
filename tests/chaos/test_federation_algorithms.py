"""Every algorithm over Flower ends with the bits of its simulation: three organisations, or two of them drawn a round.

AdaFedSelectKD with a start of its own is what test_federation_faults.py disturbs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import TOLD
from laying import CANARY, RUNS, Simulation
from sites import SELECT, Federation, Site, events

from pipeline.federated.events import Event

pytestmark = pytest.mark.timeout(400)
BUFFERED = "fedbuff"
Lay = Callable[[str], Federation]


def files_of(site: Site) -> list[Path]:
    """All that lies at a site: adapters, logs, MLflow's and Flower's databases, caches."""
    return [path for path in site.folder.rglob("*") if path.is_file() and not path.is_symlink()]


def test_the_word_that_no_server_may_hold_is_at_every_organisation(federation_of: Lay) -> None:
    """So that the other tests look for something that is there."""
    for node in federation_of(SELECT).nodes.values():
        assert [path for path in files_of(node) if CANARY in path.read_bytes()]


@pytest.mark.parametrize("run", sorted(set(RUNS) - {SELECT, BUFFERED, "strict"}))
def test_a_deployed_training_is_its_simulation(federation_of: Lay, simulation: Simulation, run: str) -> None:
    federation = federation_of(run)
    federation.start()
    federation.wait_until_trained()
    assert federation.outcome() == simulation.outcome(run)
    assert not [path for path in files_of(federation.server) if CANARY in path.read_bytes()]
    TOLD.append(f"{run} over Flower: the same bits as its simulation")


def test_a_deployed_buffers_arrivals_replayed_give_the_same_bits(federation_of: Lay, simulation: Simulation) -> None:
    """Whoever answers first is in the buffer of two first; replayed in that order, the models are the same."""
    federation = federation_of(BUFFERED)
    federation.start()
    federation.wait_until_trained()
    rows = events(federation.server.folder, BUFFERED)
    recorded = [Event(int(row["round"]), row["client"], row["kind"], row["why"]) for row in rows]  # type: ignore[arg-type]
    arrived = [event.client for event in recorded if event.kind == "arrived"]
    assert len(arrived) == 2 * 3
    assert federation.outcome() == simulation.replayed(BUFFERED, recorded)
    TOLD.append(f"fedbuff over Flower: answers of {', '.join(arrived)}; replayed in one process: the same bits")
