"""Plans of labelled texts: which runs no page shows, and how its settings are shown."""

from typing import Any

import pytest
from conftest import ROOT
from labelled import ALL, RUNS, SETTINGS

from pipeline.clients.batches import LEAST_STEPS, batch_sizes
from pipeline.evaluation.comparisons import read_comparisons
from pipeline.pages.tasks import altered
from pipeline.plan.checks import unshown
from pipeline.plan.orders import ReportOrder
from pipeline.plan.reading import read_scales
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params
from pipeline.report.task_page import TaskPage


def params(**changes: Any) -> Params:
    return Params.model_validate(
        {key: value for key, value in (ALL | {"omit": ["news-full"]} | changes).items() if key != "scales"}
    )


def page_of(found: Params) -> ReportOrder:
    return ReportOrder.model_validate(resolve(found)["report.json"])


def test_what_would_show_a_run_is_what_it_lacks() -> None:
    """`owners` is no setting of the first table; `late` is omitted, and the page has no place for it."""
    of_owners = {"setting": "owners", "method": "AdaFedAvg"}
    runs = RUNS | {"owners-more": of_owners, "more": of_owners, "late": of_owners}
    assert unshown(params(runs=runs, omit=["late"])) == {
        "owners-more": "name owners in sections.methods, or name it in another section",
        "more": "name owners in sections.methods and call it owners-…, or name it in another section",
    }
    assert unshown(params(runs=runs, page="faults", sections={})) == {}


def test_two_settings_of_one_data_set_are_shown_side_by_side() -> None:
    """Their names alone tell them apart."""
    settings = SETTINGS | {"skewed": SETTINGS["news"] | {"alpha": 0.1}}
    order = page_of(params(settings=settings, sections={"methods": ["news", "skewed", "names"]}))
    page = TaskPage(order, {}, {}, {}, "", [], [], frozenset())
    titles = ["Classifying (news, news)", "Classifying (news, skewed)", "Tagging (names)"]
    assert [page.title(setting) for setting in order.sections["methods"]] == titles


@pytest.mark.parametrize(("alpha", "found"), [(1.0, frozenset()), (0.1, frozenset({"tc"}))])
def test_a_setting_that_is_skewed_otherwise_than_the_papers_is_found(alpha: float, found: frozenset[str]) -> None:
    """Table 2's is skewed by the file's alpha, which is 1 in the paper."""
    order = page_of(params(settings=SETTINGS | {"tc": SETTINGS["news"]}, alpha=alpha))
    assert altered(order, {"tc": {"alpha": 1.0}, "elsewhere": {"alpha": 1.0}}) == found


@pytest.mark.parametrize(("scale", "sentences"), [("laptop", 1003), ("full", 12_543)])
def test_the_shipped_experiment_is_comparable(scale: str, sentences: int) -> None:
    """Within a table each method has one number of rounds; settings are skewed as the paper's; comparisons are of runs.

    At the laptop's scale 1,003 sentences of 30 tagging clients: 33 or 34 each, in at least five batches of 7.
    """
    experiment = ROOT / "experiments" / "fednlp"
    content = read_scales(experiment / "params.yaml")[1][scale]
    found = Params.model_validate(content | {"precision": "fp32"})
    made = set(found.runs_of_scale)
    for table in ("partitions", "cuts", "sizes"):
        runs = made & set(found.sections[table])
        rounds = {(found.runs[run].method, found.training_of(run).rounds) for run in runs}
        assert len(rounds) == len(dict(rounds)), table
    config = read_comparisons(experiment / "comparisons.yaml")
    assert altered(page_of(found), config.settings) == frozenset()
    assert set(config.settings) <= set(found.settings)
    compared = [one for one in config.comparisons if (one.scale or "full") == scale]
    assert [one.name for one in compared if not one.terms.keys() <= made] == []
    assert len(batch_sizes(sentences // 30, found.training_of("st-fedavg").batch_size)) >= LEAST_STEPS
