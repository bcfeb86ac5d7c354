"""The paper's effects and sections, compared with the experiments that ship."""

from statistics import fmean

import pytest
from conftest import ROOT

from pipeline.evaluation.comparisons import read_comparisons
from pipeline.plan.checks import read_params
from pipeline.plan.schema import Params
from pipeline.report.paper import Section, average_of, read_paper, sections_of
from pipeline.workspace import layout
from pipeline.workspace.tables import read_table


@pytest.fixture(scope="module")
def paper() -> list[Section]:
    return read_paper()


@pytest.fixture(scope="module")
def params() -> Params:
    return read_params(ROOT / "experiments" / "paper" / "params.yaml")


FULL, PAPER_RESULTS = ROOT / "experiments" / "full", ROOT / layout.paper("paper_results.csv")
METHODS = {
    "centralized": "AdaCentralized",
    "single": "AdaSingle",
    "fedavg": "AdaFedAvg",
    "fedkd": "AdaFedKD",
    "fedselectkd": "AdaFedSelectKD",
}


@pytest.mark.parametrize("name", ["fedavg", "single", "fedkd", "pooled", "centralized"])
def test_an_effect_of_the_paper_is_the_mean_of_its_three_tables(name: str) -> None:
    """The gain of AdaFedSelectKD over AdaFedAvg is 1.07, 0.84 and 0.88: 0.93."""
    rows = read_table(PAPER_RESULTS)
    for path in (ROOT / "experiments" / "paper" / "comparisons.yaml", FULL / "comparisons.yaml"):
        one = next(one for one in read_comparisons(path).comparisons if one.name == name)
        gains = [
            sum(
                weight
                * fmean(average_of(row) for row in rows if (row["table"], row["method"]) == (table, METHODS[run]))
                for run, weight in one.terms.items()
            )
            for table in ("III", "IV", "VI")
        ]
        assert fmean(gains) == pytest.approx(one.effects["average"], abs=0.006)


def test_compared_runs_share_a_setting_and_write_summaries_where_rouge_is_compared() -> None:
    full = read_params(FULL / "params.yaml")
    for one in read_comparisons(FULL / "comparisons.yaml").comparisons:
        runs = [full.runs[run] for run in one.terms]
        assert len({run.setting for run in runs}) == 1, one.name
        assert "average" not in one.effects or all(run.decode for run in runs), one.name


"""Sections about what is no comparison of runs."""


def test_a_users_section_is_at_the_end(paper: list[Section], params: Params) -> None:
    found = sections_of([*params.sections, "mine"], paper=True)
    assert found[:-1] == paper
    assert (found[-1].name, found[-1].says, found[-1].tables) == ("mine", "", ())
    assert [one.heading for one in sections_of(["mine"], paper=False)] == ["Section: mine"]
