"""The claims that ship, put to the params.yaml that ships: what is compared with what."""

from __future__ import annotations

import pytest

from pipeline.plan.schema import Params, read_params
from pipeline.report.claims.claim import Claim
from pipeline.report.claims.sections import sections
from pipeline.report.data_tables import span_end
from pipeline.workspace import layout
from pipeline.workspace.tables import read_table

DOMAINS = ("Academic", "Committee", "Product")
FOUR = (*DOMAINS, "SAMSum")


@pytest.fixture(scope="module")
def params() -> Params:
    return read_params()


@pytest.fixture(scope="module")
def claims(params: Params) -> list[tuple[str, Claim]]:
    """(Study, claim) of the whole page."""
    found = sections(read_table(layout.PAPER_RESULTS), params.studies)
    return [(section.study, claim) for section in found for claim in section.claims]


def test_every_run_of_a_claim_is_planned_and_stands_in_its_part(
    claims: list[tuple[str, Claim]], params: Params
) -> None:
    in_part = params.studies | {part: list(params.runs) for part in ("main", "human", "words")}
    for study, claim in claims:
        for run in (claim.ours, claim.theirs):
            assert not run or run in in_part[study], f"{claim.text}: {run}"


def test_a_claim_in_rouge_is_of_runs_that_write_summaries(claims: list[tuple[str, Claim]], params: Params) -> None:
    for _, claim in claims:
        for run in (claim.ours, claim.theirs) if claim.metric in ("average", "preference") else ():
            assert not run or params.all_runs[run].decode, f"{claim.text}: {run}"


def test_no_two_claims_have_one_text(claims: list[tuple[str, Claim]]) -> None:
    """A claim finds its counterpart on all of QMSum by its text."""
    texts = [claim.text for _, claim in claims]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("text", "ours", "theirs", "rule", "clients"),
    [
        ("AdaFedSelectKD is above AdaFedAvg", "fedselectkd", "fedavg", "above", ()),
        ("AdaFedSelectKD is comparable to AdaCentralized", "fedselectkd", "centralized", "comparable", ()),
        ("AdaFedProx is above AdaFedAvg", "fedprox", "fedavg-base", "above", ()),
        ("AdaFedSelectKD is above AdaFedNova", "fedselectkd-base", "fednova", "above", ()),
        ("Little is gained by AdaFedKD over AdaFedAvg on IID data", "fedkd-iid", "fedavg-iid", "little", ()),
        ("AdaFedAvg loses on the three clients when SAMSum joins", "fedavg-extreme", "fedavg-base", "below", DOMAINS),
        ("AdaFedKD gains on the three clients when SAMSum joins", "fedkd-extreme", "fedkd-base", "above", DOMAINS),
        ("AdaFedKD is above AdaFedAvg with SAMSum, on all four", "fedkd-extreme", "fedavg-extreme", "above", FOUR),
        ("Pre-addition is above post-addition", "fedselectkd-pre", "fedselectkd-post", "above", DOMAINS),
        ("AdaFedKD: all clients are above two drawn, at equal rounds", "fedkd-base", "fedkd-sampled", "above", ()),
        ("AdaFedSelectKD is above AdaFedAvg when two are drawn", "fedselectkd-sampled", "fedavg-sampled", "above", ()),
        ("AdaFedSelectKD is above hard distillation", "fedselectkd-base", "fedhardkd", "above", ()),
    ],
)
def test_a_sentence_of_the_paper_is_about_these_runs(
    claims: list[tuple[str, Claim]], text: str, ours: str, theirs: str, rule: str, clients: tuple[str, ...]
) -> None:
    (claim,) = [claim for _, claim in claims if claim.text == text]
    assert (claim.ours, claim.theirs, claim.rule, claim.clients) == (ours, theirs, rule, clients)


def test_the_reading_of_a_span_that_the_paper_has_is_told() -> None:
    """Of two rows the exclusive reading has both of the paper's turns, the inclusive one the second."""
    rows = [
        {"paper_turns": "10.00", "inclusive_turns": "11.00", "exclusive_turns": "10.00"},
        {"paper_turns": "7.50", "inclusive_turns": "7.50", "exclusive_turns": "7.501"},
    ]
    assert "in 2 of 2 rows, of QMSum as it means its spans in 1." in span_end({"qmsum": rows})
    assert span_end({"ami": rows}) == ""
