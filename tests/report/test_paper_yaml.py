"""The paper's effects and sections, compared with the experiments that ship."""

from statistics import fmean

import pytest
from conftest import ROOT

from pipeline.evaluation.comparisons import read_comparisons
from pipeline.plan.checks import read_params
from pipeline.report.paper import average_of, read_paper, sections_of
from pipeline.workspace import layout
from pipeline.workspace.tables import read_table

FULL, PAPER = (ROOT / "experiments" / name for name in ("full", "paper"))


@pytest.mark.parametrize("name", ["fedavg", "single", "fedkd", "pooled", "centralized"])
def test_an_effect_of_the_paper_is_the_mean_of_its_three_tables(name: str) -> None:
    """The gain of AdaFedSelectKD over AdaFedAvg is 1.07, 0.84 and 0.88: 0.93."""
    scores: dict[tuple[str, str], list[float]] = {}
    for row in read_table(ROOT / layout.paper("paper_results.csv")):
        scores.setdefault((row["table"], row["method"].lower()), []).append(average_of(row))
    for folder in (PAPER, FULL):
        one = next(one for one in read_comparisons(folder / "comparisons.yaml").comparisons if one.name == name)
        terms = [(weight, f"ada{run}") for run, weight in one.terms.items()]
        gains = [sum(w * fmean(scores[table, method]) for w, method in terms) for table in ("III", "IV", "VI")]
        assert fmean(gains) == pytest.approx(one.effects["average"], abs=0.006)


def test_compared_runs_share_a_setting_and_write_summaries_where_rouge_is_compared() -> None:
    full = read_params(FULL / "params.yaml")
    for one in read_comparisons(FULL / "comparisons.yaml").comparisons:
        runs = [full.runs[run] for run in one.terms]
        assert len({run.setting for run in runs}) == 1, one.name
        assert "average" not in one.effects or all(run.decode for run in runs), one.name


def test_a_users_section_is_at_the_end() -> None:
    found = sections_of([*read_params(PAPER / "params.yaml").sections, "mine"], paper=True)
    assert found[:-1] == read_paper()
    assert (found[-1].name, found[-1].says, found[-1].tables) == ("mine", "", ())
    assert [one.heading for one in sections_of(["mine"], paper=False)] == ["Section: mine"]
