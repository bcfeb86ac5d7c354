"""Every algorithm over Flower ends with the bits of its simulation: three organisations, or two of them drawn a round.

test_federation_faults.py disturbs AdaFedSelectKD with `local_start: own`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPORT
from prepared_sites import RUNS, Simulation
from private_meetings import CANARY
from sites import SELECT, Federation, Site

from pipeline.federated.engine import Event

pytestmark = pytest.mark.timeout(400)
BUFFERED = "fedbuff"
Create = Callable[[str], Federation]


def with_canary(site: Site) -> list[Path]:
    """The site's files that have the private word: adapters, logs, MLflow's and Flower's databases, caches."""
    files = [path for path in site.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if CANARY.encode() in path.read_bytes()]


def test_the_private_word_is_at_every_organisation(federation_of: Create) -> None:
    """Without it the next test would prove nothing."""
    assert all(with_canary(node) for node in federation_of(SELECT).nodes.values())


@pytest.mark.parametrize("run", sorted(set(RUNS) - {SELECT, BUFFERED, "strict"}))
def test_a_deployed_training_is_its_simulation(federation_of: Create, simulation: Simulation, run: str) -> None:
    federation = federation_of(run)
    federation.start()
    federation.wait_until_trained()
    assert federation.outcome() == simulation.outcome(run)
    assert not with_canary(federation.server)
    REPORT.append(f"{run} over Flower: the same bits as its simulation")


def test_a_deployed_buffers_arrivals_replayed_give_the_same_bits(federation_of: Create, simulation: Simulation) -> None:
    """The buffer of two takes the first answers; a simulation that replays their order gives the same models."""
    federation = federation_of(BUFFERED)
    federation.start()
    federation.wait_until_trained()
    recorded = [Event(int(round_), client, kind, why) for round_, client, kind, why in federation.events()]  # type: ignore[arg-type]
    arrived = [event.client for event in recorded if event.kind == "arrived"]
    assert len(arrived) == 2 * 3
    assert federation.outcome() == simulation.replayed(BUFFERED, recorded)
    REPORT.append(f"fedbuff over Flower: answers of {', '.join(arrived)}; replayed in one process: the same bits")
