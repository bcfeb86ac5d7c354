"""What is special to labelled texts: clients of every kind, cuts, shared decoding, and how their plans are shown."""

import shutil
from typing import Any

import pytest
from conftest import ROOT, Workspace
from labelled import ALL, EVERY, RUNS, SETTINGS
from test_stages import manifest, rows_of

from pipeline.clients.batches import LEAST_STEPS, batch_sizes
from pipeline.corpora.example import examples_of
from pipeline.corpora.labelled import Titled
from pipeline.errors import QuorumError
from pipeline.evaluation.comparisons import read_comparisons
from pipeline.model.adapter import read_adapter
from pipeline.pages.tasks import altered
from pipeline.plan.checks import unshown
from pipeline.plan.orders import PredictOrder, ReportOrder, read_order
from pipeline.plan.reading import read_scales
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params
from pipeline.report.task_page import TaskPage
from pipeline.runs import jobs
from pipeline.runs.learners import model_of
from pipeline.runs.predicting import Predictor
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl
from pipeline.workspace.tables import read_table


@pytest.mark.parametrize("evaluated", ["best", "last"])
def test_models_of_the_evaluated_round_and_the_other_are_written(copy: Workspace, evaluated: str) -> None:
    """With too high a rate the loss rises: the first of two rounds is the best, and its model is not the last."""
    risen = RUNS["news-head"] | {"learning_rate": 3.0, "seeds": [1]}
    copy.params(evaluated=evaluated, runs=copy.read_params()["runs"] | {"news-head": risen})
    copy.stage("plan")
    for stage in ("train", "predict", "evaluate"):
        copy.stage(stage, "news-head")
    first, last = (float(row["validation_loss"]) for row in read_table(copy.folder / layout.history("news-head/1")))
    assert first < last
    adapters = copy.folder / layout.adapters("news-head/1")
    other = "last" if evaluated == "best" else "best"
    assert (adapters / "server.safetensors").read_bytes() != (adapters / f"server.{other}.safetensors").read_bytes()
    assert rows_of(copy, "news-head")


def test_owners_that_write_are_evaluated_as_each_alone_is(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are decoded together."""
    monkeypatch.chdir(built.folder)
    order = read_order(layout.order("predict", "owners-fedavg"), PredictOrder)
    predictor = Predictor(order.learner, model_of(order.learner), examples_of(order.data, Titled))
    (job,) = jobs.jobs_of("owners-fedavg/1")
    owners = {client for client, _ in job.tests}
    assert len(owners) > 1
    for client in owners:
        alone = jobs.job_of(job.run_id, "", order, job.index, [pair for pair in job.tests if pair[0] == client])
        assert alone.path != job.path
        predictor.texts([alone])
        found = predictor.predict(alone)
        for row in (row for row in read_jsonl(layout.predictions("owners-fedavg/1")) if row["client"] == client):
            assert found[row["id"]]["prediction"] == row["prediction"]
            assert found[row["id"]]["loss_sum"] == pytest.approx(row["loss_sum"], rel=1e-5)
        alone.path.unlink()


@pytest.mark.parametrize(
    ("run", "parts"),
    [("news-small", {"head", "embeddings", "layers.0", "layers.1"}), ("news-lora", {"head", "layers.1", "layers.2"})],
)
def test_what_trains_is_all_that_is_saved(built: Workspace, run: str, parts: set[str]) -> None:
    names = (name.split(".") for name in read_adapter(built.folder / layout.adapter(f"{run}/1", "server")))
    assert {".".join(name[:2]) if name[0] == "layers" else name[0] for name in names} == parts


def test_a_partition_is_exported_under_fednlps_name_and_read_back(copy: Workspace) -> None:
    """Each seed takes other training texts, so each needs a file."""

    def partitioned(setting: dict[str, Any]) -> list[dict[str, list[str]]]:
        copy.params(data=EVERY["data"] | {"news": news}, settings=EVERY["settings"] | {"news": setting})
        copy.stage("plan")
        copy.stage("partition", "news")
        return [{c: sorted(own["train"]) for c, own in manifest(copy, "news", seed).items()} for seed in (1, 2)]

    news = EVERY["data"]["news"] | {"take": {"train": {"count": 30}}}
    skewed = partitioned(SETTINGS["news"])
    (copy.folder / "data/own").mkdir(exist_ok=True)
    for seed in (1, 2):
        exported = copy.folder / layout.partition("news", 1).with_name(f"niid_label_clients=4_alpha=1.0-{seed}.json")
        shutil.copy(exported, copy.folder / f"data/own/mine-{seed}.json")
    assert partitioned({"data": "news", "kind": "given", "file": "data/own/mine-{seed}.json"}) == skewed
    assert skewed[0] != skewed[1]


def test_published_threads_in_two_splits_are_counted_once(copy: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    copy.stage("partition", "news")
    counts = [line for line in capsys.readouterr().err.splitlines() if "groups" in line]
    assert counts == ["partition news: 5 groups of test examples are in training, too, as published"]


def own_rows(workspace: Workspace, *rows: str) -> None:
    """A file of one's own in place of the posts, with its plan."""
    own = {key: value for key, value in EVERY["data"]["news"].items() if key != "headers"}
    file = workspace.folder / "data/own/news.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(("text,label,split,group", *rows)) + "\n", encoding="utf-8")
    sources = ["news" if one == "20news" else one for one in EVERY["sources"]]
    data = EVERY["data"] | {"news": own | {"source": "news", "file": "data/own/news.csv"}}
    workspace.params(sources=sources, data=data)
    workspace.stage("plan")
    workspace.stage("ingest", "news")


def test_a_group_of_an_own_file_in_training_and_in_the_test_is_one_line(copy: Workspace) -> None:
    own_rows(copy, "a,x,train,g", "b,x,val,h", "c,x,test,g")
    with pytest.raises(QuorumError, match=r"news.csv: line 4: group 'g' is tested, and line 2 trains on it; put all"):
        copy.stage("prepare", "news")


def test_equal_texts_and_labels_without_a_test_are_counted(copy: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three texts in training, one is also for validation and, in other letters, twice in the test."""
    trained = "Hi all,x,train,a", "b,y,train,b", "c,x,train,c"
    own_rows(copy, *trained, "hi  ALL,x,val,d", "HI all,x,test,e", "hi all,x,test,f")
    copy.stage("prepare", "news")
    printed = capsys.readouterr().err
    assert "prepare news: no test example has y\n" in printed
    counts = "1 val in train, 2 test in train, 2 test in val"
    assert f"prepare news: examples with equal texts in two splits: {counts}\n" in printed
    assert read_json(copy.folder / layout.notes("news"))["equal"]["test_in_train"] == 2


def params(**changes: Any) -> Params:
    known = {key: value for key, value in ALL.items() if key != "scales"}
    return Params.model_validate(known | {"omit": ["news-full"]} | changes)


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
