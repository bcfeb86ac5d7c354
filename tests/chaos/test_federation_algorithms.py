"""Every algorithm over Flower ends with the bits of its simulation: three organisations, or two of them drawn a round.

AdaFedSelectKD with a start of its own is what test_federation_faults.py disturbs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import TOLD
from laying import RUNS, Simulation
from sites import SELECT, Federation, events

from pipeline.federated.events import Event

pytestmark = pytest.mark.timeout(400)
BUFFERED = "fedbuff"
Lay = Callable[[str], Federation]


@pytest.mark.parametrize("run", sorted(set(RUNS) - {SELECT, BUFFERED}))
def test_a_deployed_training_is_its_simulation(federation_of: Lay, simulation: Simulation, run: str) -> None:
    federation = federation_of(run)
    federation.start()
    federation.wait_until_trained()
    assert federation.outcome() == simulation.outcome(run)
    TOLD.append(f"{run} over Flower: the same bits as its simulation")


def test_a_deployed_buffers_arrivals_replayed_give_the_same_bits(federation_of: Lay, simulation: Simulation) -> None:
    """Whoever answers first is in the buffer of two first; replayed in that order, the models are the same.

    The one figure left out is the loss of a client's own model, which no server has: a node that is still sending has
    trained already, and in the replay its turn comes with its answer.
    """
    federation = federation_of(BUFFERED)
    federation.start()
    federation.wait_until_trained()
    rows = events(federation.server.folder, BUFFERED)
    recorded = [Event(int(row["round"]), row["client"], row["kind"], row["why"]) for row in rows]  # type: ignore[arg-type]
    arrived = [event.client for event in recorded if event.kind == "arrived"]
    assert len(arrived) == 2 * 3
    outcomes = federation.outcome(), simulation.replayed(BUFFERED, recorded)
    for row in (row for outcome in outcomes for row in outcome["history"]):
        del row["local_validation_loss"]
    assert outcomes[0] == outcomes[1]
    TOLD.append(f"fedbuff over Flower: answers of {', '.join(arrived)}; replayed in one process: the same bits")
