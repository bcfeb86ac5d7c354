"""The paper's claims and sections, put to the params.yaml that ships: what is compared with what."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
import yaml
from conftest import ROOT
from pydantic import ValidationError
from shipped import SHIPPED

from pipeline.plan.schema import Params, read_params
from pipeline.report.paper import PAPER, Paper, average_of, read_paper
from pipeline.workspace import layout
from pipeline.workspace.tables import read_table


@pytest.fixture(scope="module")
def paper() -> Paper:
    return read_paper()


@pytest.fixture(scope="module")
def params() -> Params:
    return read_params(ROOT / "params.yaml")


@pytest.fixture(scope="module")
def full() -> Params:
    """The claims are judged on all of QMSum."""
    return read_params(ROOT / "experiments" / "full" / "params.yaml")


def test_eight_claims_are_judged_by_effects_that_were_fixed_beforehand(paper: Paper) -> None:
    """Of average ROUGE in points, of test loss in nats."""
    assert {claim.number: claim.effects for claim in paper.claims} == {
        0: {"average": 1.81, "loss": 0.02},
        1: {"average": 0.93, "loss": 0.02},
        2: {"average": 0.93, "loss": 0.005},
        3: {"average": 1.66, "loss": 0.02},
        4: {"average": 0.50, "loss": 0.005},
        5: {"loss": 0.005},
        6: {"loss": 0.005},
        7: {"average": -0.5},
    }
    assert [claim.number for claim in paper.claims] == list(range(8))


def test_each_claim_is_about_two_runs(paper: Paper) -> None:
    assert [(claim.ours, claim.theirs) for claim in paper.claims] == [
        ("centralized", "single"),
        ("fedselectkd", "fedavg"),
        ("fedselectkd", "fedavg-local"),
        ("fedselectkd", "single"),
        ("fedselectkd", "fedkd"),
        ("fedselectkd", "kd-random"),
        ("fedselectkd", "teacher-initial"),
        ("fedselectkd", "centralized"),
    ]


def test_one_claim_is_the_gate_and_one_has_a_margin(paper: Paper) -> None:
    """Holm's adjustment runs over claims 1 to 4 and over 5 and 6."""
    assert [claim.number for claim in paper.claims if claim.gate] == [0]
    assert {claim.number: claim.margin for claim in paper.claims if claim.margin is not None} == {7: 0.5}
    families = {name: [c.number for c in paper.claims if c.family == name] for name in {c.family for c in paper.claims}}
    assert families.pop("") == [0, 7]
    assert sorted(families.values()) == [[1, 2, 3, 4], [5, 6]]


METHODS = {
    "centralized": "AdaCentralized",
    "single": "AdaSingle",
    "fedavg": "AdaFedAvg",
    "fedkd": "AdaFedKD",
    "fedselectkd": "AdaFedSelectKD",
}


@pytest.mark.parametrize("number", [0, 1, 3, 4])
def test_an_effect_in_rouge_is_the_mean_of_the_papers_three_tables(paper: Paper, number: int) -> None:
    """The gain of AdaFedSelectKD over AdaFedAvg is 1.07, 0.84 and 0.88: 0.93."""
    rows = read_table(ROOT / layout.PAPER_RESULTS)
    claim = paper.claims[number]

    def mean(table: str, run: str) -> float:
        return fmean(average_of(row) for row in rows if (row["table"], row["method"]) == (table, METHODS[run]))

    gains = [mean(table, claim.ours) - mean(table, claim.theirs) for table in ("III", "IV", "VI")]
    assert fmean(gains) == pytest.approx(claim.effects["average"], abs=0.006)
    if number == 1:
        assert [round(gain, 2) for gain in gains] == [1.07, 0.84, 0.88]


def test_every_run_of_a_claim_is_planned(paper: Paper, full: Params) -> None:
    """And has the method that the claim is about."""
    named = {run for claim in paper.claims for run in (claim.ours, claim.theirs)}
    assert named <= set(full.all_runs)
    for run, method in METHODS.items():
        assert full.all_runs[run].method == method
    assert full.all_runs["fedavg-local"].evaluate == "local"
    assert full.all_runs["kd-random"].knobs["select"] == "random"
    assert full.all_runs["teacher-initial"].knobs["teacher"] == "initial"


def test_the_two_runs_of_a_claim_have_one_setting(paper: Paper, full: Params) -> None:
    for claim in paper.claims:
        ours, theirs = full.all_runs[claim.ours], full.all_runs[claim.theirs]
        assert ours.setting == theirs.setting, claim.number


def test_a_claim_in_rouge_is_of_runs_that_write_summaries(paper: Paper, full: Params) -> None:
    for claim in paper.claims:
        if "average" in claim.effects:
            assert full.all_runs[claim.ours].decode, claim.number
            assert full.all_runs[claim.theirs].decode, claim.number


def test_no_two_claims_have_one_text(paper: Paper) -> None:
    texts = [claim.text for claim in paper.claims]
    assert len(set(texts)) == len(texts)
    assert all(texts)


WITHOUT_A_STUDY = {"mechanism", "human", "words", "case", "matrix", "divergence", "communication"}
"""Sections about what is no comparison of runs."""


def test_every_section_has_a_study_or_is_no_comparison(paper: Paper) -> None:
    sections = [section.study for section in paper.sections]
    assert len(set(sections)) == len(sections)
    assert set(sections) - set(SHIPPED["studies"]) == WITHOUT_A_STUDY


def test_every_study_of_the_shipped_file_has_a_section(paper: Paper) -> None:
    assert set(SHIPPED["studies"]) <= {section.study for section in paper.sections}


def test_every_run_of_a_study_is_planned(params: Params) -> None:
    assert {run for runs in params.studies.values() for run in runs} <= set(params.all_runs)


def test_the_tables_of_a_section_are_the_papers(paper: Paper) -> None:
    """Each of the paper's tables of scores stands in one section."""
    rows = read_table(ROOT / layout.PAPER_RESULTS)
    named = [table for section in paper.sections for table in section.tables]
    assert sorted(named) == sorted({row["table"] for row in rows})


def test_a_study_of_ones_own_is_a_section_at_the_end(paper: Paper) -> None:
    found = paper.with_studies([*SHIPPED["studies"], "mine"])
    assert found[:-1] == list(paper.sections)
    assert (found[-1].study, found[-1].says, found[-1].tables) == ("mine", "", ())
    assert paper.with_studies([]) == list(paper.sections)


def test_a_misspelt_key_is_an_error(tmp_path: Path) -> None:
    """As `effect` for `effects` would leave a claim without an endpoint."""
    data = yaml.safe_load(PAPER.read_text(encoding="utf-8"))
    data["claims"][1]["effect"] = data["claims"][1].pop("effects")
    path = tmp_path / "paper.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(ValidationError, match="effect"):
        read_paper(path)
