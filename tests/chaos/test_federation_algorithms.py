"""Every algorithm over Flower ends with the bits of its simulation: three organisations, or two of them drawn a round.

test_federation_faults.py disturbs AdaFedSelectKD with `local_start: own`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from private_meetings import CANARY

from chaos.sites import NODES, RUNS, SELECT, Federation, Simulation, Site

pytestmark = pytest.mark.timeout(400)
Create = Callable[[str], Federation]


def with_canary(site: Site) -> list[Path]:
    """The site's files that have the private word: adapters, logs, MLflow's and Flower's databases, caches."""
    files = [path for path in site.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize("run", sorted(set(RUNS) - {SELECT, "fedbuff", "strict", "extract"}))
def test_a_deployed_training_is_its_simulation(federation_of: Create, simulation: Simulation, run: str) -> None:
    federation = federation_of(run)
    federation.start()
    assert federation.outcome() == simulation.outcome(run)
    assert {name for name, site in federation.sites.items() if with_canary(site)} == set(NODES)


def test_a_deployed_buffer_takes_the_first_answers(federation_of: Create) -> None:
    """Two in each of three rounds, in an order that no simulation knows."""
    federation = federation_of("fedbuff")
    federation.start()
    assert {row["round"] for row in federation.outcome()["history"]} == {"1", "2", "3"}
    assert [kind for _, _, kind, _ in federation.events()].count("arrived") == 2 * 3


def test_an_extractor_is_deployed(federation_of: Create) -> None:
    """Each organisation splits its own documents, so no simulation has the same."""
    federation = federation_of("extract")
    federation.start()
    history = federation.outcome()["history"]
    rounds = [(row["round"], row["client"]) for row in history]
    assert rounds == [(number, name) for number in "123" for name in sorted(NODES)]
