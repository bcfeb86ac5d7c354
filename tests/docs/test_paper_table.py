"""The table of docs/paper.md is that of the committed runs of `make repro-all`."""

from __future__ import annotations

import pytest
import yaml
from conftest import ROOT
from told import rows_of
from told_of_paper import (
    METRICS,
    OURS,
    STUDIES,
    ahead,
    best_round,
    ended_by_the_cap,
    histories,
    kept,
    mean_of,
    runs_of,
    words_over_the_references,
    writes,
)

from pipeline.runs.results import common_clients

PAGE = ROOT / "docs" / "paper.md"


def clients_of(study: str) -> tuple[str, ...]:
    common, _ = common_clients({run: kept()[run]["clients"] for run in runs_of(study)})
    return tuple(common)


def rounds_of(run: str, clients: tuple[str, ...]) -> str:
    if run not in histories():
        return ""
    best = sorted({best_round(run, client) for client in clients})
    span = f"{best[0]}–{best[-1]}" if len(best) > 1 else f"{best[0]}"
    return f"{span}, cap" if ended_by_the_cap(run) else span


def scores_of(study: str, run: str, reference: str) -> list[str]:
    """Average ROUGE, what the reference is ahead by, and length; then the test loss, and what it is ahead by."""
    clients = clients_of(study)
    gains = {
        metric: ahead(study, reference, run, metric).told()
        for metric in METRICS
        if run != reference and (writes(run) or metric == "loss")
    }
    loss = [f"{mean_of(run, 'loss', clients):.3f}", gains.get("loss", "")]
    if not writes(run):
        return ["", "", "", *loss]
    rouge = f"{mean_of(run, 'average', clients):.2f}"
    return [rouge, gains.get("average", ""), words_over_the_references(run, *clients), *loss]


def wanted() -> list[list[str]]:
    paper = yaml.safe_load((ROOT / "pipeline" / "report" / "paper.yaml").read_text(encoding="utf-8"))
    sources = {one["study"]: one["source"] for one in paper["sections"]}
    rows = []
    for study in STUDIES:
        runs = runs_of(study)
        reference = OURS if OURS in runs else next(run for run in runs if run.startswith(OURS))
        for run in runs:
            own = scores_of(study, run, reference)
            rows.append([sources[study], run, *own, rounds_of(run, clients_of(study))])
    return rows


def test_the_table_is_that_of_the_committed_runs() -> None:
    assert rows_of(PAGE, "part") == wanted()


@pytest.mark.parametrize("study", STUDIES)
def test_every_run_of_a_study_was_made(study: str) -> None:
    assert set(runs_of(study)) <= set(kept())
