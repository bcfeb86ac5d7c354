"""Plans of labelled texts: which orders a change renews, what an order is caused by, and which keys are refused."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import ROOT
from labelled import ALL, RUNS, SETTINGS

from pipeline.clients.batches import LEAST_STEPS, batch_sizes
from pipeline.evaluation.comparisons import read_comparisons
from pipeline.pages.tasks import altered
from pipeline.plan import resolve as resolving
from pipeline.plan import training as training_plan
from pipeline.plan.checks import unshown
from pipeline.plan.orders import ReportOrder
from pipeline.plan.reading import read_scales
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params
from pipeline.report.task_page import TaskPage


def params(**changes: Any) -> Params:
    return Params.model_validate({key: value for key, value in (ALL | changes).items() if key != "scales"})


def test_templates_are_behind_the_page() -> None:
    code = resolve(params())["report.json"]["code"]
    assert {"task_page.html.j2", "page.css"} <= set(code)


def test_another_method_or_task_changes_no_order() -> None:
    """The lists of them are no cause of a result; what a run uses of them is."""
    listed = {"pipeline.federated.algorithms", "pipeline.tasks", "pipeline.plan.schema", "pipeline.plan.run"}
    for name, order in resolve(params()).items():
        codes = [order.get("code", {}), (order.get("training") or {}).get("code", {})]
        assert not any(listed & set(code) for code in codes), name


@pytest.mark.parametrize(
    ("edited", "encoded", "trained"),
    [
        ("pipeline.tasks.classify", True, True),
        ("pipeline.tasks.encoded", True, True),
        ("pipeline.model.encoder", True, True),
        ("pipeline.model.presets", True, True),
        ("pipeline.tasks.heads", False, True),
        ("pipeline.federated.loop", False, True),
        ("pipeline.tasks.rouge", False, False),
        ("pipeline.model.generation", False, False),
        ("pipeline.runs.predicting", False, False),
    ],
)
def test_an_edit_renames_what_it_is_a_cause_of(
    edited: str, encoded: bool, trained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries are known by the code that reads texts, trainings also by what learns; neither by what scores."""
    before, known = resolve(params()), resolving.code_of

    def code_of(*modules: str, **more: Any) -> dict[str, str]:
        found = known(*modules, **more)
        return found | ({edited: "another"} if edited in found else {})

    for module in (resolving, training_plan):
        monkeypatch.setattr(module, "code_of", code_of)
    after = resolve(params())
    entries = [found["encode/news.json"]["encoding"]["news-fedavg"] for found in (before, after)]
    codes = [found["train/news-fedavg.json"]["training"]["code"] for found in (before, after)]
    assert (entries[0] != entries[1], codes[0] != codes[1]) == (encoded, trained)


def test_a_setting_that_is_skewed_otherwise_than_the_papers_is_told_apart() -> None:
    """Table 2's is skewed by the file's alpha, which is 1 in the paper."""
    settings = SETTINGS | {"tc": SETTINGS["news"]}
    found = {}
    for alpha in (1.0, 0.1):
        order = resolve(params(settings=settings, alpha=alpha))["report.json"]
        found[alpha] = altered(ReportOrder.model_validate(order), {"tc": {"alpha": 1.0}, "elsewhere": {"alpha": 1.0}})
    assert found == {1.0: frozenset(), 0.1: frozenset({"tc"})}


def test_what_would_show_a_run_is_what_it_lacks() -> None:
    """`owners` is no setting of the first table; `late` is of another scale, and the page has no place for it."""
    of_owners = {"setting": "owners", "method": "AdaFedAvg"}
    runs = RUNS | {"owners-more": of_owners, "more": of_owners, "late": of_owners | {"at": "full"}}
    assert unshown(params(runs=runs)) == {
        "owners-more": "name owners in sections.methods, or name it in another section",
        "more": "name owners in sections.methods and call it owners-…, or name it in another section",
    }
    assert unshown(params(runs=runs, page="faults", sections={})) == {}


def test_two_settings_of_one_data_set_are_shown_side_by_side() -> None:
    """Their names alone tell them apart."""
    settings = SETTINGS | {"skewed": SETTINGS["news"] | {"alpha": 0.1}}
    found = params(settings=settings, sections={"methods": ["news", "skewed", "names"]})
    order = ReportOrder.model_validate(resolve(found)["report.json"])
    page = TaskPage(order, {}, {}, {}, "", [], [], frozenset())
    assert [page.title(setting) for setting in order.sections["methods"]] == [
        "Classifying (news, news)",
        "Classifying (news, skewed)",
        "Tagging (names)",
    ]


def shipped(scale: str) -> Params:
    found = read_scales(ROOT / "experiments" / "fednlp" / "params.yaml")[1][scale]
    return Params.model_validate(found | {"precision": "fp32"})


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_runs_that_one_table_compares_have_as_many_rounds(scale: str) -> None:
    found = shipped(scale)
    for table in ("partitions", "cuts", "sizes"):
        rounds = {
            (found.runs[run].method, found.training_of(run).rounds)
            for run in found.sections[table]
            if run in found.runs_of_scale
        }
        assert len(rounds) == len({method for method, _ in rounds}), table


FEDNLP = read_comparisons(ROOT / "experiments" / "fednlp" / "comparisons.yaml")


def test_comparisons_name_runs_and_settings_of_the_shipped_experiment() -> None:
    made = {scale: set(shipped(scale).runs_of_scale) for scale in ("laptop", "full")}
    for one in FEDNLP.comparisons:
        assert set(one.terms) <= made[one.scale or "full"], one.name
    assert set(FEDNLP.settings) <= set(shipped("full").settings)


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_the_shipped_settings_are_skewed_as_the_papers(scale: str) -> None:
    order = resolve(shipped(scale))["report.json"]
    assert altered(ReportOrder.model_validate(order), FEDNLP.settings) == frozenset()


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_clients_of_the_tagging_federation_train_for_five_steps(scale: str) -> None:
    """At the laptop's scale 1,003 sentences of 30 clients: 33 or 34 each, in batches of 7."""
    found = shipped(scale)
    texts = {"laptop": 1003, "full": 12_543}[scale]
    assert len(batch_sizes(texts // 30, found.training_of("st-fedavg").batch_size)) >= LEAST_STEPS
