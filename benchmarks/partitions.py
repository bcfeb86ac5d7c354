"""Our skewed partitions against flwr-datasets' in distribution -> reports/benchmarks/partitions.md.

`python -m pip install --target work/peers flwr-datasets==0.6.1`, once (its pins contradict MLflow's), then
`python -m benchmarks.partitions`. 20 labels, 100 clients of 100 texts, 20 seeds. Labels: each client's Σ q² over its
shares of labels. Both sides have ten times the texts that they deal out, since a label that runs out bends ours towards
what is left, and flwr's divides 0 by 0 there. Its clients draw texts one by one, so that Σ q̂² is too large; the
unbiased (s Σ q̂² − 1) / (s − 1) is compared. Quantities: the coefficient of variation of clients' sizes. It fails if two
means differ by more than three standard errors. No times are compared.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks.__main__ import OUT
from pipeline.clients import dirichlet
from pipeline.errors import QuorumError
from pipeline.workspace import layout
from pipeline.workspace.files import write_text

PEERS = Path("work/peers")
LABELS, CLIENTS, SIZE, MORE, SEEDS = 20, 100, 100, 10, range(20)
"""`MORE`: so many times the texts that are dealt out are there."""
TOTAL = CLIENTS * SIZE * MORE
PARAMETERS = (1.0, 10.0)
APART = 3.0
"""Standard errors between two means, at most."""


def squares(shares: Sequence[Sequence[float]]) -> float:
    """The mean over clients of Σ q²."""
    return float(np.square(np.array(shares)).sum(1).mean())


def variation(sizes: Sequence[int]) -> float:
    return float(np.std(sizes) / np.mean(sizes))


def our_labels(alpha: float, seed: int) -> float:
    ids = [str(i) for i in range(TOTAL)]
    label = {identity: f"{int(identity) % LABELS:02d}" for identity in ids}
    held = dirichlet.partition(ids, list(label.values()), CLIENTS * MORE, seed=seed, dataset="even", alpha=alpha)
    return squares([_shares([label[i] for i in own]) for own in held[:CLIENTS]])


def our_sizes(beta: float, seed: int) -> float:
    ids = [str(i) for i in range(TOTAL)]
    held = dirichlet.partition(ids, [""] * TOTAL, CLIENTS, seed=seed, dataset="even", beta=beta)
    return variation([len(own) for own in held])


def _shares(labels: Sequence[str]) -> list[float]:
    return [labels.count(f"{label:02d}") / len(labels) for label in range(LABELS)]


def their_labels(alpha: float, seed: int) -> float:
    from datasets import Dataset
    from flwr_datasets.partitioner import InnerDirichletPartitioner

    even = [alpha / LABELS] * LABELS  # theirs is each label's, ours the total
    dealt = InnerDirichletPartitioner([SIZE] * CLIENTS, "label", even, seed=seed)
    dealt.dataset = Dataset.from_dict({"label": [i % LABELS for i in range(TOTAL)]})
    found = [[f"{label:02d}" for label in dealt.load_partition(client)["label"]] for client in range(CLIENTS)]
    return (SIZE * squares([_shares(own) for own in found]) - 1) / (SIZE - 1)


def their_sizes(beta: float, seed: int) -> float:
    from datasets import Dataset
    from flwr_datasets.partitioner import DirichletPartitioner

    dealt = DirichletPartitioner(CLIENTS, "label", beta, min_partition_size=0, self_balancing=False, seed=seed)
    dealt.dataset = Dataset.from_dict({"label": [0] * TOTAL})
    return variation([len(dealt.load_partition(client)) for client in range(CLIENTS)])


SIDES: dict[str, dict[str, Callable[[float, int], float]]] = {
    "ours": {"labels": our_labels, "sizes": our_sizes},
    "theirs": {"labels": their_labels, "sizes": their_sizes},
}
EXPECTED: dict[str, Callable[[float], float]] = {
    "labels": lambda alpha: (1 + (LABELS - 1) / (alpha + 1)) / LABELS,
    "sizes": lambda beta: float(np.sqrt((CLIENTS - 1) / (CLIENTS * beta + 1))),
}
"""Σ p² + (1 − Σ p²) / (α + 1) of even labels; the coefficient of variation of Dir(β) shares."""


def main() -> None:
    if sys.argv[1:] == ["theirs"]:
        print(json.dumps(measured("theirs")))
        return
    if not (layout.home() / PEERS / "flwr_datasets").is_dir():
        raise SystemExit(f"error: flwr-datasets is not there; run `pip install --target {PEERS} flwr-datasets==0.6.1`")
    ours, theirs = measured("ours"), _in_their_process()
    write_text(OUT / "partitions.md", markdown(ours, theirs))
    print(markdown(ours, theirs))
    wrong = [row for row in ours if apart(ours[row], theirs[row]) > APART]
    if wrong:
        raise SystemExit(f"error: {', '.join(wrong)}: further apart than {APART:g} standard errors")


def measured(side: str) -> dict[str, list[float]]:
    """What is drawn and how -> a figure a seed."""
    return {
        f"{what} {parameter:g}": [draw(parameter, seed) for seed in SEEDS]
        for what, draw in SIDES[side].items()
        for parameter in PARAMETERS
    }


def _in_their_process() -> dict[str, list[float]]:
    told = {**os.environ, "PYTHONPATH": os.pathsep.join([str(layout.home() / PEERS), str(layout.home())])}
    command = [sys.executable, "-m", "benchmarks.partitions", "theirs"]
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
    if done.returncode:
        raise QuorumError(f"flwr-datasets: failed: {' '.join(done.stderr.split())[-600:]}")
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def error_of(values: Sequence[float]) -> float:
    """The standard error of their mean."""
    return float(stdev(values) / np.sqrt(len(values)))


def apart(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """By how many standard errors two means differ."""
    return abs(fmean(ours) - fmean(theirs)) / float(np.hypot(error_of(ours), error_of(theirs)))


def markdown(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    lines = [
        f"Measured on {date.today().isoformat()}: means over {len(SEEDS)} seeds and their standard errors, "
        "against flwr-datasets 0.6.1.",
        "",
        "| what | Quorum | flwr-datasets | by the formula | apart, standard errors |",
        "|---|---|---|---|---|",
    ]
    for row in ours:
        what, parameter = row.split()
        name = f"Σ q² of labels, α = {parameter}" if what == "labels" else f"variation of sizes, β = {parameter}"
        means = [f"{fmean(side[row]):.4f} ± {error_of(side[row]):.4f}" for side in (ours, theirs)]
        formula = f"{EXPECTED[what](float(parameter)):.4f}"
        lines.append(f"| {name} | {' | '.join(means)} | {formula} | {apart(ours[row], theirs[row]):.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
