"""Plans of labelled texts: which orders a change renews, what an order is caused by, and which keys are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from labelled import ALL, NEWS, RUNS, SETTINGS, TASKS

from pipeline.clients.batches import LEAST_STEPS, batch_sizes
from pipeline.errors import QuorumError
from pipeline.evaluation.comparisons import read_comparisons
from pipeline.pages.tasks import altered
from pipeline.plan import resolve as resolving
from pipeline.plan import training as training_plan
from pipeline.plan.checks import unshown
from pipeline.plan.orders import ReportOrder
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params, read_params
from pipeline.report.task_page import TaskPage


class Plain(yaml.SafeDumper):
    """Writes no anchors, which params.yaml may not have."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def params(tmp_path: Path, **changes: Any) -> Params:
    path = tmp_path / "params.yaml"
    path.write_text(yaml.dump(ALL | changes, Dumper=Plain), encoding="utf-8")
    return read_params(path)


def changed(tmp_path: Path, **changes: Any) -> set[str]:
    """The stages whose orders other parameters change."""
    before, after = resolve(params(tmp_path)), resolve(params(tmp_path, **changes))
    return {name for name in before if before[name] != after[name]}


def test_alpha_changes_the_federation_that_leaves_it_open_alone(tmp_path: Path) -> None:
    """Its runs train anew, since who holds what is another; nothing is encoded anew."""
    assert changed(tmp_path, alpha=0.1) == {"partition/news.json", "report.json"}


def test_skewed_sizes_alone_leave_labels_as_they_are(tmp_path: Path) -> None:
    sizes = {"data": "news", "kind": "skewed", "clients": 4, "beta": 5.0}
    assert params(tmp_path, settings=SETTINGS | {"news": sizes}).setting_of("news").alpha is None  # type: ignore[union-attr]
    assert params(tmp_path).setting_of("news").alpha == 1.0  # type: ignore[union-attr]


def test_templates_are_behind_the_page(tmp_path: Path) -> None:
    code = resolve(params(tmp_path))["report.json"]["code"]
    assert {"task_page.html.j2", "page.css"} <= set(code)


def test_another_method_or_task_changes_no_order(tmp_path: Path) -> None:
    """The lists of them are no cause of a result; what a run uses of them is."""
    listed = {"pipeline.federated.algorithms", "pipeline.tasks", "pipeline.plan.schema", "pipeline.plan.run"}
    for name, order in resolve(params(tmp_path)).items():
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
    edited: str, encoded: bool, trained: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries are known by the code that reads texts, trainings also by what learns; neither by what scores."""
    before, known = resolve(params(tmp_path)), resolving.code_of

    def code_of(*modules: str, **more: Any) -> dict[str, str]:
        found = known(*modules, **more)
        return found | ({edited: "another"} if edited in found else {})

    for module in (resolving, training_plan):
        monkeypatch.setattr(module, "code_of", code_of)
    after = resolve(params(tmp_path))
    entries = [found["encode/news.json"]["encoding"]["news-fedavg"] for found in (before, after)]
    codes = [found["train/news-fedavg.json"]["training"]["code"] for found in (before, after)]
    assert (entries[0] != entries[1], codes[0] != codes[1]) == (encoded, trained)


def test_how_spans_are_counted_is_no_cause_of_a_training(tmp_path: Path) -> None:
    orders = resolve(params(tmp_path))
    assert "pipeline.tasks.spans" not in orders["train/names-single.json"]["training"]["code"]
    assert "pipeline.tasks.spans" in orders["evaluate/names-single.json"]["code"]


def test_a_title_of_ones_own_may_be_longer(tmp_path: Path) -> None:
    tasks = TASKS | {"subjects": TASKS["subjects"] | {"max_tokens": 60}}
    assert changed(tmp_path, data=tasks) == {
        "predict/subjects-fedopt.json",
        "predict/owners-fedavg.json",
        "report.json",
    }
    order = resolve(params(tmp_path, data=tasks))["predict/subjects-fedopt.json"]
    assert order["rule"]["max_tokens"] == 60


def test_a_setting_that_is_skewed_otherwise_than_the_papers_is_told_apart(tmp_path: Path) -> None:
    """Table 2's is skewed by the file's alpha, which is 1 in the paper."""
    settings = SETTINGS | {"tc": SETTINGS["news"]}
    found = {}
    for alpha in (1.0, 0.1):
        order = resolve(params(tmp_path, settings=settings, alpha=alpha))["report.json"]
        found[alpha] = altered(ReportOrder.model_validate(order), {"tc": {"alpha": 1.0}, "elsewhere": {"alpha": 1.0}})
    assert found == {1.0: frozenset(), 0.1: frozenset({"tc"})}


def test_a_runs_knob_changes_its_own_training_alone(tmp_path: Path) -> None:
    runs = RUNS | {"answers-fedprox": RUNS["answers-fedprox"] | {"mu": 0.2}}
    assert resolve(params(tmp_path))["train/answers-fedprox.json"]["training"]["hyperparameters"] == {"mu": 0.1}
    assert changed(tmp_path, runs=runs) == {"train/answers-fedprox.json", "report.json"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 0}, r"alpha: Input should be greater than 0 \(found 0\)"),
        (
            {"settings": SETTINGS | {"news": SETTINGS["news"] | {"alpha": -1}}},
            "settings.news.alpha: Input should",
        ),
        (
            {"settings": SETTINGS | {"news": SETTINGS["news"] | {"clients": 0}}},
            "settings.news.clients: Input should",
        ),
        ({"settings": SETTINGS | {"news": {"data": "news", "kind": "given"}}}, "settings.news.file: is missing"),
        (
            {"settings": SETTINGS | {"news": {"data": "news", "kind": "given", "file": "a.json"}}},
            "a.json: is not in data/own/, where DVC looks; move it there, and set data/own/a.json",
        ),
        ({"runs": {}, "sections": {}}, "runs: Dictionary should have at least 1 item"),
        ({"scale": "huge"}, "scale: 'huge'; known: full, laptop"),
        (
            {"settings": SETTINGS | {"news": {"data": "x", "kind": "skewed", "clients": 2}}},
            "no data set 'x'; known: answers,",
        ),
        ({"runs": RUNS | {"a": {"setting": "x", "method": "AdaFedAvg"}}}, "runs.a.setting: no setting 'x'"),
        ({"runs": {"a": {"setting": "news", "method": "Magic"}}}, "unknown method 'Magic'"),
        (
            {"runs": {"a": {"setting": "news", "method": "AdaFedAvg", "above": "lora"}}},
            "runs.a.size: is missing, and lora needs one; correct it$",
        ),
        (
            {"backbones": ["tiny-bert"]},
            "backbones: must name those that are used: tiny-bert, tiny-distilbert, tiny-llama",
        ),
        (
            {"data": TASKS | {"news": TASKS["news"] | {"file": "data/own/a.csv"}}},
            "data.news.file: set source: news",
        ),
        (
            {"data": TASKS | {"news": TASKS["news"] | {"backbone": "tiny-llama"}}},
            r"runs.news-fedavg.backbone: 'tiny-llama' cannot classify; known: [a-z0-9, -]+$",
        ),
        ({"runs": {"a": NEWS | {"backbone": "tiny-llama"}}}, "runs.a.backbone: 'tiny-llama' cannot classify"),
        (
            {"runs": {"a": NEWS | {"setting": "subjects", "frozen": "e"}}},
            "runs.a.frozen: tiny-llama is no encoder; remove it",
        ),
        (
            {"data": TASKS | {"subjects": TASKS["subjects"] | {"frozen": "e"}}},
            "runs.owners-fedavg.frozen: tiny-llama is no encoder; remove it",
        ),
        (
            {"data": TASKS | {"news": TASKS["news"] | {"frozen": "x"}}},
            "data.news: frozen: 'x': write none, e, e,0 or e,0-K",
        ),
        ({"sections": {"cuts": ["news-fedvag"]}}, "sections.cuts: no run or setting 'news-fedvag'"),
    ],
)
def test_a_wrong_key_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match=message):
        params(tmp_path, **changes)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"method": "AdaFedHardKD"}, r"runs.a: AdaFedHardKD distils at nouns and verbs of what is written"),
        ({"method": "AdaFedAvg", "muu": 1}, r"runs.a.muu: unknown key"),
        ({"method": "AdaFedAvg", "frozen": "e,1"}, r"runs.a.frozen: 'e,1': write none"),
        ({"method": "AdaFedAvg", "frozen": "e,0-3"}, r"runs.a: frozen: e,0-3, but it has 3 layers; freeze fewer"),
        ({"method": "AdaFedAvg", "frozen": "e,0-1", "layers": [2]}, r"runs.a: frozen: e,0-1, but it has 1 layers"),
        ({"method": "AdaFedAvg", "batch_size": 0}, r"runs.a.batch_size: Input should be"),
        (
            {"method": "Ditto", "mu": 0.1},
            r"runs.a: Ditto evaluates each client's own model, and setting news the server's",
        ),
        (
            {"method": "AdaFedAvg", "client_optimizer": "sgd", "client_optimizer_state": "keep"},
            r"runs.a.client_optimizer_state: keep: SGD has no moments",
        ),
    ],
)
def test_a_run_that_cannot_be_made_is_named(run: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match=message):
        resolve(params(tmp_path, runs=RUNS | {"a": {"setting": "news"} | run}))


def test_a_cut_of_the_data_set_fits_every_run(tmp_path: Path) -> None:
    """A run that sets none may have fewer layers."""
    short = {"setting": "news", "method": "AdaFedAvg", "layers": [0, 2]}
    with pytest.raises(QuorumError, match=r"runs.a: frozen: e,0-2, but it has 2 layers; freeze fewer"):
        resolve(params(tmp_path, runs=RUNS | {"a": short}, data=TASKS | {"news": TASKS["news"] | {"frozen": "e,0-2"}}))


def test_what_would_show_a_run_is_what_it_lacks(tmp_path: Path) -> None:
    """`owners` is no setting of the first table; `late` is of another scale, and the page has no place for it."""
    of_owners = {"setting": "owners", "method": "AdaFedAvg"}
    runs = RUNS | {"owners-more": of_owners, "more": of_owners, "late": of_owners | {"at": "full"}}
    assert unshown(params(tmp_path, runs=runs)) == {
        "owners-more": "name owners in sections.methods, or name it in another section",
        "more": "name owners in sections.methods and call it owners-…, or name it in another section",
    }
    assert unshown(params(tmp_path, runs=runs, page="faults", sections={})) == {}


def test_two_settings_of_one_data_set_are_shown_side_by_side(tmp_path: Path) -> None:
    """Their names alone tell them apart."""
    settings = SETTINGS | {"skewed": SETTINGS["news"] | {"alpha": 0.1}}
    found = params(tmp_path, settings=settings, sections={"methods": ["news", "skewed", "names"]})
    order = ReportOrder.model_validate(resolve(found)["report.json"])
    page = TaskPage(order, {}, {}, {}, [], [], [], [])
    assert [page.title(setting) for setting in order.sections["methods"]] == [
        "Classifying (news, news)",
        "Classifying (news, skewed)",
        "Tagging (names)",
    ]


def shipped(scale: str, tmp_path: Path) -> Params:
    text = (ROOT / "experiments" / "fednlp" / "params.yaml").read_text(encoding="utf-8")
    assert "\nscale: laptop" in text
    (tmp_path / "shipped.yaml").write_text(text.replace("\nscale: laptop", f"\nscale: {scale}"), encoding="utf-8")
    return read_params(tmp_path / "shipped.yaml")


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_every_run_of_the_shipped_experiment_has_its_orders_and_is_shown(scale: str, tmp_path: Path) -> None:
    """In a table of its own, or among the methods of its setting; or it is pooled until nothing gets better."""
    found = shipped(scale, tmp_path)
    assert {f"train/{run}.json" for run in found.runs} <= set(resolve(found))
    assert unshown(found) == {}


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_runs_that_one_table_compares_have_as_many_rounds(scale: str, tmp_path: Path) -> None:
    found = shipped(scale, tmp_path)
    for table in ("partitions", "cuts", "sizes"):
        rounds = {
            (found.runs[run].method, found.training_of(run).rounds)
            for run in found.sections[table]
            if run in found.runs_of_scale
        }
        assert len(rounds) == len({method for method, _ in rounds}), table


FEDNLP = read_comparisons(ROOT / "experiments" / "fednlp" / "comparisons.yaml")


def test_comparisons_name_runs_and_settings_of_the_shipped_experiment(tmp_path: Path) -> None:
    made = {scale: set(shipped(scale, tmp_path).runs_of_scale) for scale in ("laptop", "full")}
    for one in FEDNLP.comparisons:
        assert set(one.terms) <= made[one.scale or "full"], one.name
    assert set(FEDNLP.settings) <= set(shipped("full", tmp_path).settings)


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_the_shipped_settings_are_skewed_as_the_papers(scale: str, tmp_path: Path) -> None:
    order = resolve(shipped(scale, tmp_path))["report.json"]
    assert altered(ReportOrder.model_validate(order), FEDNLP.settings) == frozenset()


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_clients_of_the_tagging_federation_train_for_five_steps(scale: str, tmp_path: Path) -> None:
    """At the laptop's scale 1,003 sentences of 30 clients: 33 or 34 each, in batches of 7."""
    found = shipped(scale, tmp_path)
    texts = {"laptop": 1003, "full": 12_543}[scale]
    assert len(batch_sizes(texts // 30, found.training_of("st-fedavg").batch_size)) >= LEAST_STEPS
