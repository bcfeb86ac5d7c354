"""Experiments on labelled texts, from the made-up samples to scores, above tiny models."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT, Workspace
from workspaces import stand_ins

from pipeline.clients.batches import LEAST_STEPS, batch_sizes
from pipeline.errors import QuorumError
from pipeline.evaluation.comparisons import read_comparisons
from pipeline.plan import text_resolve
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import EncodeTextsOrder, TextEvaluateOrder, TextPageOrder, TextTraining
from pipeline.plan.text_pages import unshown
from pipeline.plan.text_resolve import resolve_texts
from pipeline.plan.texts import TextParams, read_text_params
from pipeline.report.text_page import TextPage
from pipeline.runs import text_tuning
from pipeline.stages.text_page import altered
from pipeline.workspace import layout
from pipeline.workspace.files import read_jsonl, write_json, write_jsonl, write_text

PLAIN: dict[str, Any] = {
    "scale": "laptop",
    "seeds": [1, 2],
    "device": "cpu",
    "precision": "fp32",
    "data_source": "sample",
    "alpha": 1.0,
    "rounds": 2,
    "patience": 9,
    "local_epochs": 1,
    "batch_size": 4,
    "clients_per_round": None,
    "client_optimizer": "adamw",
    "client_schedule": "constant",
    "weight_decay": 0.01,
    "clip_norm": 1.0,
    "tau": 1.0,
    "lambda": 0.2,
    "local_start": "own",
    "sign_flips": 200,
    "scales": {"laptop": {}},
    "tables": {
        "methods": ["news", "names", "answers", "subjects"],
        "partitions": ["news-fedavg"],
        "cuts": ["news-pooled", "news-head", "news-lora", "news-full"],
        "sizes": ["news-fedavg", "news-small"],
        "natural": ["names-single", "names-ditto", "owners-fedavg"],
    },
}
RATES = {"adamw": 0.005, "sgd": 0.1, "pooled": 0.005}
COMMON = {"rounds": 2, "batch_size": 4, "rates": RATES}
ENCODED = COMMON | {"backbone": "tiny-bert", "frozen": "e,0"}
TASKS: dict[str, dict[str, Any]] = {
    "news": ENCODED
    | {"task": "classify", "published": "20news", "headers": "subject", "tokens": 48, "take": {"test": {"each": 3}}},
    "names": ENCODED | {"task": "tag", "published": "uner", "tokens": 64, "take": {"train": {"count": 60}}},
    "answers": ENCODED
    | {"knobs": {"AdaFedProx": {"mu": 0.1}}}
    | {"task": "answer", "published": "squad", "tokens": 80, "take": {"test": {"count": 9}, "val": {"count": 9}}},
    "subjects": COMMON
    | {"task": "title", "published": "aeslc", "backbone": "tiny-llama", "tokens": 300, "target_tokens": 12},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "news": {"data": "news", "kind": "skewed", "clients": 4},
    "names": {"data": "names", "kind": "natural", "least": 2},
    "answers": {"data": "answers", "kind": "natural", "silos": 3, "own": False},
    "subjects": {"data": "subjects", "kind": "skewed", "by": "cluster", "clients": 3, "alpha": 0.5},
    "owners": {"data": "subjects", "kind": "natural", "least": 2},
}
RUNS: dict[str, dict[str, Any]] = {
    "news-untrained": {"setting": "news", "method": "ZeroShot"},
    "news-fedavg": {"setting": "news", "method": "AdaFedAvg", "client_optimizer": "sgd", "clients_per_round": 2},
    "news-pooled": {"setting": "news", "method": "AdaCentralized"},
    "news-head": {"setting": "news", "method": "AdaFedAvg", "frozen": "e,0-2"},
    "news-small": {"setting": "news", "method": "AdaFedAvg", "frozen": "none", "layers": [0, 2], "seeds": [1]},
    "news-lora": {"setting": "news", "method": "AdaFedAvg", "above": "lora", "size": 2, "seeds": [1]},
    "names-single": {"setting": "names", "method": "AdaSingle"},
    "names-ditto": {"setting": "names", "method": "Ditto", "mu": 0.1},
    "answers-fedprox": {"setting": "answers", "method": "AdaFedProx"},
    "news-full": {"setting": "news", "method": "AdaFedAvg", "backbone": "tiny-distilbert", "at": "full"},
    "owners-fedavg": {"setting": "owners", "method": "AdaFedAvg", "seeds": [1]},
    "subjects-fedopt": {
        "setting": "subjects",
        "method": "AdaFedOPT",
        "server_optimizer": "momentum",
        "server_learning_rate": 0.5,
    },
}
NEWS = {"setting": "news", "method": "AdaFedAvg"}
MADE = [run for run in RUNS if "at" not in RUNS[run]]
ALL = PLAIN | {
    "datasets": TASKS,
    "settings": SETTINGS,
    "runs": RUNS,
    "backbones": ["tiny-bert", "tiny-distilbert", "tiny-llama"],
}


COMPARED = """
question: Does training help?
comparisons:
  - {name: trained, statement: "", terms: {news-fedavg: 1, news-untrained: -1}, effects: {accuracy: 2.0}, family: news}
  - {name: gone, statement: "", terms: {news-fedavg: 1, gone: -1}, effects: {accuracy: null}, family: news}
"""


def laid(folder: Path, **changes: Any) -> Workspace:
    """A clone with an experiment on labelled texts as its root."""
    workspace = Workspace.laid(folder)
    (workspace.folder / "comparisons.yaml").write_text(COMPARED, encoding="utf-8")
    (workspace.folder / "params.yaml").write_text(yaml.safe_dump(ALL | changes, sort_keys=False), encoding="utf-8")
    return workspace


def make(workspace: Workspace, *runs: str) -> None:
    """All stages of an experiment, in this process."""
    params = workspace.read_params()
    workspace.stage("plan")
    for published in {data["published"] for data in params["datasets"].values() if data.get("published")}:
        workspace.stage("ingest", published)
    for name in params["backbones"]:
        workspace.stage("text_backbone", name)
    for dataset in params["datasets"]:
        workspace.stage("prepare", dataset)
        workspace.stage("encode_texts", dataset)
    for setting in params["settings"]:
        workspace.stage("partition", setting)
    for run in runs or params["runs"]:
        workspace.stage("train_texts", run)
        workspace.stage("evaluate_texts", run)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = laid(tmp_path_factory.mktemp("texts"))
    make(workspace)
    yield workspace
    shutil.rmtree(workspace.folder, ignore_errors=True)


def scores(workspace: Workspace, run: str) -> dict[str, Any]:
    path = workspace.folder / layout.scores(f"texts/{run}")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def manifest(workspace: Workspace, setting: str, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((workspace.folder / layout.partition(setting, seed)).read_text())["manifest"]
    return found


@pytest.mark.parametrize("run", MADE)
def test_every_test_text_is_judged_at_every_seed(made: Workspace, run: str) -> None:
    found = scores(made, run)
    assert sorted(found) == [str(seed) for seed in RUNS[run].get("seeds", [1, 2])]
    for seed, own in found.items():
        held = manifest(made, RUNS[run]["setting"], int(seed))
        assert [row["id"] for row in own["examples"]] == [i for parts in held.values() for i in parts["test"]]
        assert all(row["loss_sum"] >= 0 for row in own["examples"])


def test_a_run_of_another_scale_is_left_out(made: Workspace) -> None:
    assert scores(made, "news-full") == {}
    assert not (made.folder / layout.backbone_of("tiny-distilbert") / "model.safetensors").exists()


def test_a_run_that_is_taken_back_is_judged_again(made: Workspace, tmp_path: Path) -> None:
    """Left out, its scores are empty; taken back, it has been trained, and is scored as before."""
    copy = made.copied(tmp_path / "copy")
    before = scores(copy, "news-fedavg")
    orders = []
    for runs in (RUNS | {"news-fedavg": RUNS["news-fedavg"] | {"at": "full"}}, RUNS):
        (copy.folder / "params.yaml").write_text(yaml.safe_dump(ALL | {"runs": runs}), encoding="utf-8")
        copy.stage("plan")
        copy.stage("train_texts", "news-fedavg")
        copy.stage("evaluate_texts", "news-fedavg")
        orders.append((copy.folder / layout.order("evaluate", "news-fedavg")).read_bytes())
        if runs is not RUNS:
            assert scores(copy, "news-fedavg") == {}
    assert orders[0] != orders[1]
    assert scores(copy, "news-fedavg") == before
    assert not (copy.folder / layout.MODELS / layout.ON_TEXTS / "news-fedavg" / "left_out.json").exists()


def test_each_task_has_its_own_scores(made: Workspace) -> None:
    metrics = {run: set(scores(made, run)["1"]["examples"][0]) for run in MADE}
    common = {"id", "client", "group", "label", "prediction", "loss_sum", "items"}
    assert metrics["news-fedavg"] - common == {"accuracy"}
    assert metrics["names-single"] - common == {"f1", "spans", "true"}
    assert metrics["answers-fedprox"] - common == {"f1", "exact"}
    assert metrics["subjects-fedopt"] - common == {"rougeL", "rouge1", "rouge2", "best", "coco", "length", "words"}


def test_natural_clients_are_judged_on_their_own_texts(made: Workspace) -> None:
    """A domain each; Ditto's are about the client's own model."""
    rows = scores(made, "names-ditto")["1"]["examples"]
    assert {row["client"] for row in rows} == {"answers", "email", "newsgroup", "reviews", "weblog"}
    assert all(row["client"] in row["id"] for row in rows)


def test_owners_that_write_are_judged_as_each_would_be_alone(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are decoded together: one model of the last round, and those of each one's best."""
    from pipeline.model.adapter import read_adapter
    from pipeline.runs.text_evaluation import TextEvaluator
    from pipeline.runs.text_scoring import score_texts

    monkeypatch.chdir(made.folder)
    found, own = scores(made, "owners-fedavg")["1"], manifest(made, "owners", 1)
    evaluator = TextEvaluator("owners-fedavg", read_order(layout.order("evaluate", "owners-fedavg"), TextEvaluateOrder))
    owners = [client for client in own if own[client]["test"]]
    assert len(owners) > 1
    for client in owners:
        paths = [layout.adapter("texts/owners-fedavg/1", *name) for name in (("server",), (client, "best"))]
        models = [(read_adapter(path), own[client]["test"]) for path in paths]
        last, best = (list(one.values()) for one in score_texts(evaluator._reading, evaluator._texts, models))
        shown = [row for row in found["examples"] if row["client"] == client]
        for rows, alone in ((shown, last), (found["best"][client], best)):
            for row, expected in zip(rows, alone, strict=True):
                assert row["loss_sum"] == pytest.approx(expected["loss_sum"], rel=1e-5)
        assert [row["prediction"] for row in shown] == [row["prediction"] for row in last]


def test_what_was_read_of_a_text_is_read_by_the_next_evaluation(
    made: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept, and the scores are the same; where it would be too much, nothing is kept."""
    from pipeline.model.causal import CausalBackbone
    from pipeline.runs import prompts

    copy, read = made.copied(tmp_path / "copy"), []
    encode = CausalBackbone.encode
    before = scores(copy, "subjects-fedopt")

    def counted(self: Any, rendered: Any, *, for_generation: bool) -> Any:
        read.append(rendered.source)
        return encode(self, rendered, for_generation=for_generation)

    monkeypatch.setattr(CausalBackbone, "encode", counted)
    copy.stage("evaluate_texts", "subjects-fedopt")
    assert read == []
    assert scores(copy, "subjects-fedopt") == before
    shutil.rmtree(copy.folder / "work/prompts")
    monkeypatch.setattr(prompts, "CACHE_BYTES", 0)
    copy.stage("evaluate_texts", "subjects-fedopt")
    assert read
    assert not (copy.folder / "work/prompts").exists()
    assert scores(copy, "subjects-fedopt") == before


def test_silos_share_articles_and_the_server_judges(made: Workspace) -> None:
    held = manifest(made, "answers", 1)
    assert len(held) == 4
    assert {row["client"] for row in scores(made, "answers-fedprox")["1"]["examples"]} == {"server"}


def test_rounds_make_the_development_loss_fall(made: Workspace) -> None:
    """Of every domain, and of the server's model; most words are outside of any name, which is soon learned."""
    with (made.folder / layout.history("texts/names-ditto/1")).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    first = {row["client"]: float(row["sent_validation_loss"]) for row in rows if row["round"] == "1"}
    last = {row["client"]: float(row["server_validation_loss"]) for row in rows if row["round"] == "2"}
    assert all(last[client] < first[client] for client in first)


def test_what_is_not_frozen_is_all_that_is_kept(made: Workspace) -> None:
    from pipeline.model.adapter import read_adapter

    def parts(run: str) -> set[str]:
        names = read_adapter(made.folder / layout.adapter(f"texts/{run}/1", "server"))
        return {".".join(name.split(".")[:2]) if name.startswith("layers") else name.split(".")[0] for name in names}

    assert parts("news-head") == {"head"}
    assert parts("news-fedavg") == {"head", "layers.1", "layers.2"}
    assert parts("news-small") == {"head", "embeddings", "layers.0", "layers.1"}
    assert parts("news-lora") == {"head", "layers.1", "layers.2"}


def test_a_deeper_cut_goes_on_from_a_lower_one(
    made: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three layers the first runs for the lower cut, and the two above it for the deeper one."""
    from pipeline.model.encoder import Encoder

    ran: dict[str, set[tuple[int, ...]]] = {}
    run = Encoder._run

    def noted(self: Encoder, hidden: Any, mask: Any, adapter: Any, layers: range) -> Any:
        ran.setdefault(str(self.frozen), set()).add(tuple(layers))
        return run(self, hidden, mask, adapter, layers)

    copy = made.copied(tmp_path / "copy")
    shutil.rmtree(copy.folder / "work/store")
    monkeypatch.setattr(Encoder, "_run", noted)
    copy.stage("encode_texts", "news")
    assert ran == {"e,0": {(0,)}, "e,0-2": {(1, 2)}}


def test_a_deeper_cut_is_stored_as_if_no_other_were(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on from the lower one's states, which are in the store."""
    from pipeline.corpora.prepared import examples_of
    from pipeline.model.store import PrefixStore
    from pipeline.runs.text_encoding import encoder_of, read_index
    from pipeline.runs.text_reading import windows_of
    from pipeline.tasks.classify import TASK
    from pipeline.tasks.encoded import to_store

    monkeypatch.chdir(made.folder)
    order = read_order(layout.order("encode", "news"), EncodeTextsOrder)
    assert "tiny-bert e,0" in order.views
    view = order.views["tiny-bert e,0-2"]
    index, texts, encoder = (
        read_index("news", view),
        examples_of(["news"], TASK.kind),
        encoder_of(view, "cpu", "fp32"),
    )
    for identity, (entry, *_) in index.entries.items():
        (alone,) = encoder.encode(windows_of(texts[identity], TASK, encoder, view, index.classes))
        (found,) = PrefixStore(layout.store()).training([entry.key])
        assert found["hidden"].equal(to_store(encoder, TASK, alone)["hidden"])


def test_a_partition_is_exported_under_fednlps_name(made: Workspace) -> None:
    folder = (made.folder / layout.partition("news", 1)).parent
    assert {path.name for path in folder.glob("niid*")} == {
        f"niid_label_clients=4_alpha=1.0-{seed}.json" for seed in (1, 2)
    }


def test_exported_partitions_are_read_back_at_every_seed(made: Workspace, tmp_path: Path) -> None:
    """Each seed takes other training texts, so that each needs a file."""
    copy = made.copied(tmp_path / "copy")
    news = TASKS["news"] | {"take": {"train": {"count": 30}}}
    given = {"data": "news", "kind": "given", "file": "data/own/mine-{seed}.json"}
    clients = []
    for setting in (SETTINGS["news"], given):
        changes = {"datasets": TASKS | {"news": news}, "settings": SETTINGS | {"news": setting}}
        (copy.folder / "params.yaml").write_text(yaml.safe_dump(ALL | changes), encoding="utf-8")
        copy.stage("plan")
        copy.stage("partition", "news")
        held = [{c: sorted(own["train"]) for c, own in manifest(copy, "news", seed).items()} for seed in (1, 2)]
        clients.append(held)
        for path in (copy.folder / layout.partition("news", 1)).parent.glob("niid*.json"):
            target = copy.folder / "data/own" / f"mine-{path.stem.rpartition('-')[2]}.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    assert clients[0] == clients[1]
    assert clients[0][0] != clients[0][1]


def test_the_same_training_under_another_name_is_made_once(
    made: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = made.copied(tmp_path / "copy")
    runs = RUNS | {"news-again": RUNS["news-fedavg"]}
    (copy.folder / "params.yaml").write_text(yaml.safe_dump(ALL | {"runs": runs}), encoding="utf-8")
    copy.stage("plan")
    copy.stage("train_texts", "news-again")
    told = capsys.readouterr().err
    assert "train news-again-1: has been trained, as news-fedavg-1" in told
    both = [copy.folder / layout.MODELS / layout.run_on_texts(run, 1) for run in ("news-again", "news-fedavg")]
    again, first = ({path.name: path.read_bytes() for path in one.rglob("*") if path.is_file()} for one in both)
    assert again == first


def test_a_training_takes_no_untrained_runs_weights(made: Workspace, tmp_path: Path) -> None:
    """An untrained run has the knobs of plain averaging: it differs from it in nothing else."""
    copy = made.copied(tmp_path / "copy")
    runs = RUNS | {"news-plain": {"setting": "news", "method": "AdaFedAvg", "seeds": [1]}}
    (copy.folder / "params.yaml").write_text(yaml.safe_dump(ALL | {"runs": runs}), encoding="utf-8")
    copy.stage("plan")
    copy.stage("train_texts", "news-plain")
    copy.stage("evaluate_texts", "news-plain")
    losses = [
        [row["loss_sum"] for row in scores(copy, run)["1"]["examples"]] for run in ("news-plain", "news-untrained")
    ]
    assert losses[0] != losses[1]


def test_half_removed_models_are_none(made: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that is killed while it clears its folder leaves no note of what had been trained there."""
    copy = made.copied(tmp_path / "copy")

    def killed(folder: Path, ignore_errors: bool) -> None:
        raise KeyboardInterrupt

    changed = RUNS | {"news-fedavg": RUNS["news-fedavg"] | {"rounds": 1}}
    (copy.folder / "params.yaml").write_text(yaml.safe_dump(ALL | {"runs": changed}), encoding="utf-8")
    copy.stage("plan")
    monkeypatch.setattr("pipeline.runs.text_seeds.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        copy.stage("train_texts", "news-fedavg")
    assert not (copy.folder / layout.trained_as(layout.run_on_texts("news-fedavg", 1))).exists()


def test_trained_again_nothing_is_trained(made: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    made.stage("train_texts", "news-fedavg")
    assert capsys.readouterr().err.count("has been trained") == 2


def test_a_changed_model_is_trained_again(made: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = made.copied(tmp_path / "copy")
    path = copy.folder / layout.adapter(layout.run_on_texts("news-fedavg", 1), "server")
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    copy.stage("train_texts", "news-fedavg")
    assert capsys.readouterr().err.count("has been trained") == 1, "seed 2"
    assert path.read_bytes() == content


@pytest.fixture(scope="module")
def page(made: Workspace) -> Path:
    """The reports of the experiment's last stage."""
    with stand_ins():
        made.stage("text_page")
    return made.folder / "reports"


def test_every_table_is_written_beside_the_page(page: Path) -> None:
    names = {path.stem for path in (page / "tables").glob("*.csv")}
    assert names == {
        *("comparisons", "data", "federations", "partitions", "cuts", "sizes", "natural-names", "natural-subjects"),
        *(f"methods-{setting}" for setting in SETTINGS if setting != "owners"),
    }
    text = (page / "report.html").read_text(encoding="utf-8")
    assert "Made from the SAMPLE of answers, names, news, subjects" in text
    assert "news-pooled" in text


def test_what_is_made_no_longer_goes_from_the_reports(page: Path, made: Workspace, tmp_path: Path) -> None:
    """Only the run that answers is left: tables and curves of the others would show scores of an earlier plan."""
    copy = made.copied(tmp_path / "copy")
    left = {"answers-fedprox": RUNS["answers-fedprox"]}
    tables = {"methods": ["answers"]}
    (copy.folder / "params.yaml").write_text(
        yaml.safe_dump(
            ALL
            | {"runs": left, "tables": tables, "backbones": ["tiny-bert"]}
            | {"datasets": {"answers": TASKS["answers"]}, "settings": {"answers": SETTINGS["answers"]}}
        ),
        encoding="utf-8",
    )
    write_text(copy.folder / layout.TUNING_TABLE, "run\n")
    write_text(copy.folder / layout.TABLES / "README.md", "Tables.\n")
    copy.stage("plan")
    copy.stage("text_page")
    names = {path.stem for path in (copy.folder / layout.TABLES).iterdir()}
    assert names == {"data", "federations", "methods-answers", "tuning", "README"}
    assert {path.stem for path in (copy.folder / layout.FIGURES).iterdir()} == {"curves", "federation-answers"}


def test_a_method_is_shown_with_its_interval_and_each_seed(page: Path, made: Workspace) -> None:
    """The mean over both seeds of the texts' mean."""
    with (page / "tables" / "methods-news.csv").open(encoding="utf-8") as file:
        rows = {row["run"]: row for row in csv.DictReader(file)}
    found = scores(made, "news-fedavg")
    means = [sum(row["accuracy"] for row in own["examples"]) / len(own["examples"]) for own in found.values()]
    assert float(rows["news-fedavg"]["accuracy"]) == pytest.approx(sum(means) / 2, abs=0.006)
    assert rows["news-fedavg"]["by_seed"] == " / ".join(f"{mean:.1f}" for mean in means)
    assert rows["always hobby.baking"]["accuracy"] == "25.0"


def test_labels_are_counted_where_labels_are_predicted(page: Path) -> None:
    with (page / "tables" / "data.csv").open(encoding="utf-8") as file:
        rows = {row["data_set"]: row["labels"] for row in csv.DictReader(file)}
    assert (rows["names"], rows["answers"], rows["subjects"]) == ("7", "", "")


def test_a_federation_is_told_with_its_skew(page: Path) -> None:
    with (page / "tables" / "federations.csv").open(encoding="utf-8") as file:
        rows = {row["setting"]: (row["alpha"], row["beta"]) for row in csv.DictReader(file)}
    assert rows == {
        **dict.fromkeys(("names", "answers", "owners"), ("", "")),
        "news": ("1.0", ""),
        "subjects": ("0.5", ""),
    }


def test_texts_that_nobody_holds_are_counted(made: Workspace, tmp_path: Path) -> None:
    """As an owner's who was left out: of the sample nobody is, so that one is left out here."""
    copy = made.copied(tmp_path / "copy")
    path = copy.folder / layout.partition("answers", 1)
    federation = json.loads(path.read_text(encoding="utf-8"))
    gone = federation["manifest"].pop(min(federation["manifest"]))
    write_json(path, federation)
    copy.stage("text_page")
    with (copy.folder / layout.TABLES / "federations.csv").open(encoding="utf-8") as file:
        found = {row["setting"]: int(row["held_by_nobody"]) for row in csv.DictReader(file)}
    assert len(gone["train"]) > 0
    assert found == dict.fromkeys(SETTINGS, 0) | {"answers": len(gone["train"])}


def test_cuts_stand_in_the_order_of_their_table(page: Path) -> None:
    """Those that were made, adapters too."""
    with (page / "tables" / "cuts.csv").open(encoding="utf-8") as file:
        assert [row["run"] for row in csv.DictReader(file)] == ["news-pooled", "news-head", "news-lora"]


def test_the_gallery_shows_every_federation(page: Path) -> None:
    text = (page / "gallery.html").read_text(encoding="utf-8")
    assert all(f'<h2 id="{setting}">' in text for setting in SETTINGS)
    assert {path.stem for path in (page / "figures").glob("federation-*.png")} == {f"federation-{s}" for s in SETTINGS}


def test_a_costly_model_is_told_by_its_parameters_and_bytes(page: Path) -> None:
    with (page / "tables" / "sizes.csv").open(encoding="utf-8") as file:
        rows = {row["run"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"news-fedavg", "news-small"}
    assert int(rows["news-small"]["parameters"]) > int(rows["news-fedavg"]["parameters"]) > 0
    assert float(rows["news-fedavg"]["sent_mb"]) > 0


def test_every_run_is_in_mlflow_once(page: Path, made: Workspace) -> None:
    from pipeline.workspace.tracking import Store

    made.stage("text_page")
    with made.entered():
        client = Store()._client
        found = client.search_runs(["1"], max_results=500)
    for run in (run for run in found if run.data.params and run.data.params["dataset"] == "news"):
        name, _, seed = run.info.run_name.rpartition("-")
        rows = scores(made, name)[seed]["examples"]
        assert run.data.metrics["test/accuracy"] == pytest.approx(sum(row["accuracy"] for row in rows) / len(rows))
    names = [run.info.run_name for run in found if run.data.params]
    assert sorted(names) == sorted(f"{run}-{seed}" for run in MADE for seed in RUNS[run].get("seeds", [1, 2]))


# -- the plan --


def params(tmp_path: Path, **changes: Any) -> TextParams:
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(ALL | changes), encoding="utf-8")
    return read_text_params(path)


def changed(tmp_path: Path, **changes: Any) -> set[str]:
    """The stages whose orders other parameters change."""
    before, after = resolve_texts(params(tmp_path)), resolve_texts(params(tmp_path, **changes))
    return {name for name in before if before[name] != after[name]}


def test_alpha_changes_the_federation_that_leaves_it_open_alone(tmp_path: Path) -> None:
    """Its runs train anew, since who holds what is another; nothing is encoded anew."""
    assert changed(tmp_path, alpha=0.1) == {"partition/news.json", "page.json"}


def test_skewed_sizes_alone_leave_labels_as_they_are(tmp_path: Path) -> None:
    sizes = {"data": "news", "kind": "skewed", "clients": 4, "beta": 5.0}
    assert params(tmp_path, settings=SETTINGS | {"news": sizes}).skew_of("news").alpha is None  # type: ignore[union-attr]
    assert params(tmp_path).skew_of("news").alpha == 1.0  # type: ignore[union-attr]


def test_templates_are_behind_the_page(tmp_path: Path) -> None:
    code = resolve_texts(params(tmp_path))["page.json"]["code"]
    assert {"templates/texts_page.html.j2", "templates/page.css"} <= set(code)


def test_another_method_or_task_changes_no_order(tmp_path: Path) -> None:
    """The lists of them are no cause of a result; what a run uses of them is."""
    listed = {"pipeline.federated.algorithms", "pipeline.tasks", "pipeline.plan.texts", "pipeline.plan.run"}
    for name, order in resolve_texts(params(tmp_path)).items():
        codes = [order.get("code", {}), order.get("training", {}).get("code", {})]
        assert not any(listed & set(code) for code in codes), name


@pytest.mark.parametrize(
    ("edited", "encoded", "trained"),
    [
        ("pipeline.tasks.classify", True, True),
        ("pipeline.tasks.encoded", True, True),
        ("pipeline.runs.text_reading", True, True),
        ("pipeline.model.encoder", True, True),
        ("pipeline.model.presets", True, True),
        ("pipeline.tasks.heads", False, True),
        ("pipeline.federated.loop", False, True),
        ("pipeline.tasks.rouge", False, False),
        ("pipeline.model.generation", False, False),
        ("pipeline.runs.text_scoring", False, False),
    ],
)
def test_an_edit_renames_what_it_is_a_cause_of(
    edited: str, encoded: bool, trained: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries are known by the code that reads texts, trainings also by what learns; neither by what scores."""
    before, known = resolve_texts(params(tmp_path)), text_resolve.code_of

    def code_of(*modules: str, **more: Any) -> dict[str, str]:
        found = known(*modules, **more)
        return found | ({edited: "another"} if edited in found else {})

    monkeypatch.setattr(text_resolve, "code_of", code_of)
    after = resolve_texts(params(tmp_path))
    entries = [found["encode/news.json"]["encoding"] for found in (before, after)]
    trainings = [found["train/news-fedavg.json"]["training"]["code"] for found in (before, after)]
    assert (entries[0] != entries[1], trainings[0] != trainings[1]) == (encoded, trained)


def test_how_spans_are_counted_is_no_cause_of_a_training(tmp_path: Path) -> None:
    orders = resolve_texts(params(tmp_path))
    assert "pipeline.tasks.spans" not in orders["train/names-single.json"]["training"]["code"]
    assert "pipeline.tasks.spans" in orders["evaluate/names-single.json"]["code"]


def test_a_title_of_ones_own_may_be_longer(tmp_path: Path) -> None:
    tasks = TASKS | {"subjects": TASKS["subjects"] | {"max_tokens": 60}}
    assert changed(tmp_path, datasets=tasks) == {
        "evaluate/subjects-fedopt.json",
        "evaluate/owners-fedavg.json",
        "page.json",
    }
    order = resolve_texts(params(tmp_path, datasets=tasks))["evaluate/subjects-fedopt.json"]
    assert order["rule"]["max_tokens"] == 60


def test_a_setting_that_is_skewed_otherwise_than_the_papers_is_told_apart(tmp_path: Path) -> None:
    """Table 2's is skewed by the file's alpha, which is 1 in the paper."""
    settings = SETTINGS | {"tc": SETTINGS["news"]}
    found = {}
    for alpha in (1.0, 0.1):
        order = resolve_texts(params(tmp_path, settings=settings, alpha=alpha))["page.json"]
        found[alpha] = altered(TextPageOrder.model_validate(order), {"tc": {"alpha": 1.0}, "elsewhere": {"alpha": 1.0}})
    assert found == {1.0: frozenset(), 0.1: frozenset({"tc"})}


def test_a_runs_knob_changes_its_own_training_alone(tmp_path: Path) -> None:
    runs = RUNS | {"answers-fedprox": RUNS["answers-fedprox"] | {"mu": 0.2}}
    assert resolve_texts(params(tmp_path))["train/answers-fedprox.json"]["training"]["hyperparameters"] == {"mu": 0.1}
    assert changed(tmp_path, runs=runs) == {"train/answers-fedprox.json", "page.json"}


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
        ({"runs": {}, "tables": {}}, "params.yaml: runs: names none; add one; correct it$"),
        ({"scale": "huge"}, "scale: 'huge' is not in scales"),
        (
            {"settings": SETTINGS | {"news": {"data": "x", "kind": "skewed", "clients": 2}}},
            "no data set 'x'; known: answers,",
        ),
        ({"runs": RUNS | {"a": {"setting": "x", "method": "AdaFedAvg"}}}, "runs.a.setting: no setting 'x'"),
        ({"runs": {"a": {"setting": "news", "method": "Magic"}}}, "unknown method 'Magic'"),
        (
            {"datasets": {"news": TASKS["news"] | {"task": "summarize"}}},
            "datasets.news.task: summarize is a task on conversations",
        ),
        (
            {"runs": {"a": {"setting": "news", "method": "AdaFedAvg", "above": "lora"}}},
            "params.yaml: runs.a.size: is of bottleneck and lora alone, which need one; correct it$",
        ),
        (
            {"backbones": ["tiny-bert"]},
            "backbones: must name those that are used: tiny-bert, tiny-distilbert, tiny-llama",
        ),
        (
            {"datasets": TASKS | {"news": TASKS["news"] | {"file": "a.csv"}}},
            "datasets.news: give one of published and file; c",
        ),
        (
            {"datasets": TASKS | {"news": TASKS["news"] | {"backbone": "tiny-llama"}}},
            r"params.yaml: datasets.news.backbone: 'tiny-llama' cannot classify; known: [a-z0-9, -]+; correct it$",
        ),
        ({"runs": {"a": NEWS | {"backbone": "tiny-llama"}}}, "runs.a.backbone: 'tiny-llama' cannot classify"),
        ({"runs": {"a": NEWS | {"setting": "subjects", "frozen": "e"}}}, "runs.a.frozen: is of encoders, and a title"),
        (
            {"datasets": TASKS | {"subjects": TASKS["subjects"] | {"frozen": "e"}}},
            "params.yaml: datasets.subjects.frozen: is of encoders, and a title is written; correct it$",
        ),
        (
            {"datasets": TASKS | {"news": TASKS["news"] | {"frozen": "x"}}},
            "datasets.news.frozen: 'x': write none, e, e,0 or e,0-K",
        ),
        ({"tables": {"cuts": ["news-fedvag"]}}, "tables.cuts: 'news-fedvag' is no run"),
        (
            {"tables": {"partitions": ["news-untrained"]}},
            "tables.partitions: news-untrained is not trained, and has no curve to compare",
        ),
        (
            {"tables": {"cuts": ["news-pooled", "names-single"]}},
            "tables.cuts: names-single and news-pooled are of two tasks",
        ),
        ({"tables": {"cut": []}}, "tables: 'cut' is none of methods, partitions, cuts, sizes, natural"),
        (
            {"tune": {"rates": {"names": {"sgd": ["news-fedavg", [1, 2]]}}}},
            "tune.rates.names.sgd: run news-fedavg is not on data set names",
        ),
        ({"tune": {"own_rates": {"news-fedavg": [1]}}}, "tune.own_rates.news-fedavg: a grid needs two values or more"),
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
        ({"method": "AdaFedAvg", "frozen": "e,0-3"}, r"runs.a.frozen: e,0-3: run a has 3 layers; freeze fewer"),
        ({"method": "AdaFedAvg", "frozen": "e,0-1", "layers": [2]}, r"runs.a.frozen: e,0-1: run a has 1 layers"),
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
        resolve_texts(params(tmp_path, runs=RUNS | {"a": {"setting": "news"} | run}))


def test_a_cut_that_the_data_set_sets_is_blamed_on_it(tmp_path: Path) -> None:
    """Also where a run that sets none has fewer layers."""
    with pytest.raises(QuorumError, match=r"params.yaml: datasets.news.frozen: e,0-3: run news-fedavg has 3 layers"):
        resolve_texts(params(tmp_path, datasets=TASKS | {"news": TASKS["news"] | {"frozen": "e,0-3"}}))
    short = {"setting": "news", "method": "AdaFedAvg", "layers": [0, 2]}
    with pytest.raises(QuorumError, match=r"params.yaml: datasets.news.frozen: e,0-2: run a has 2 layers; freeze"):
        resolve_texts(
            params(tmp_path, runs=RUNS | {"a": short}, datasets=TASKS | {"news": TASKS["news"] | {"frozen": "e,0-2"}})
        )


def test_a_run_that_no_table_shows_is_told_when_it_is_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    laid(tmp_path / "laid", runs=RUNS | {"averaged": RUNS["news-fedavg"]}).stage("plan")
    said = [line for line in capsys.readouterr().err.splitlines() if "table" in line]
    assert said == [
        "plan: runs.averaged: no table will show it, reports/metrics.json alone; call it news-…, or name it in another "
        "table"
    ]


def test_what_would_show_a_run_is_what_it_lacks(tmp_path: Path) -> None:
    """`owners` is no setting of the first table; `late` is of another scale, and the page has no place for it."""
    of_owners = {"setting": "owners", "method": "AdaFedAvg"}
    runs = RUNS | {"owners-more": of_owners, "more": of_owners, "late": of_owners | {"at": "full"}}
    assert unshown(params(tmp_path, runs=runs)) == {
        "owners-more": "name owners in tables.methods, or name it in another table",
        "more": "name owners in tables.methods and call it owners-…, or name it in another table",
    }
    assert unshown(params(tmp_path, runs=runs, page="faults", tables={})) == {}


def test_owners_of_texts_that_have_none_is_one_line(made: Workspace, tmp_path: Path) -> None:
    """As of a file of one's own without that column."""
    copy = made.copied(tmp_path / "copy")
    path = copy.folder / layout.examples("news")
    write_jsonl(path, [text | {"owner": ""} for text in read_jsonl(path)])
    owned = SETTINGS | {"news": {"data": "news", "kind": "natural", "own": False}}
    (copy.folder / "params.yaml").write_text(yaml.safe_dump(ALL | {"settings": owned}), encoding="utf-8")
    copy.stage("plan")
    with pytest.raises(QuorumError, match=r"settings.news: kind: natural: no example of news has an owner"):
        copy.stage("partition", "news")


def test_a_label_that_no_test_text_has_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody who is skewed to it can be judged by it."""
    own = {key: value for key, value in TASKS["news"].items() if key not in ("published", "headers")}
    workspace = laid(tmp_path / "laid", datasets=TASKS | {"news": own | {"file": "data/own/posts.csv"}})
    rows = "text,label,split\na,x,train\nb,y,train\nc,x,val\nd,x,test\n"
    file = workspace.folder / "data/own/posts.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(rows, encoding="utf-8")
    workspace.stage("plan")
    workspace.stage("prepare", "news")
    assert "prepare news: no test example has y\n" in capsys.readouterr().err


def test_two_settings_of_one_data_set_are_shown_side_by_side(tmp_path: Path) -> None:
    """Their names alone tell them apart."""
    settings = SETTINGS | {"skewed": SETTINGS["news"] | {"alpha": 0.1}}
    found = params(tmp_path, settings=settings, tables={"methods": ["news", "skewed", "names"]})
    order = TextPageOrder.model_validate(resolve_texts(found)["page.json"])
    page = TextPage(order, {}, {}, {}, [], [], [], [])
    assert [page.title(setting) for setting in order.tables["methods"]] == [
        "Classifying (news, news)",
        "Classifying (news, skewed)",
        "Tagging (names)",
    ]


def test_more_clients_than_texts_is_one_line(made: Workspace, tmp_path: Path) -> None:
    copy = made.copied(tmp_path / "copy")
    (copy.folder / "params.yaml").write_text(
        yaml.safe_dump(ALL | {"settings": SETTINGS | {"news": SETTINGS["news"] | {"clients": 1000}}}), encoding="utf-8"
    )
    copy.stage("plan")
    before = {path.name: path.read_bytes() for path in (copy.folder / layout.PARTITIONS / "news").iterdir()}
    with pytest.raises(QuorumError, match=r"params.yaml: settings.news: 1000 clients of at least 1 need 1000 examples"):
        copy.stage("partition", "news")
    # What was there stays.
    after = {path.name: path.read_bytes() for path in (copy.folder / layout.PARTITIONS / "news").iterdir()}
    assert after == before


def shipped(scale: str, tmp_path: Path) -> TextParams:
    text = (ROOT / "experiments" / "fednlp" / "params.yaml").read_text(encoding="utf-8")
    assert "\nscale: laptop " in text
    (tmp_path / "shipped.yaml").write_text(text.replace("\nscale: laptop ", f"\nscale: {scale} "), encoding="utf-8")
    return read_text_params(tmp_path / "shipped.yaml")


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_every_run_of_the_shipped_experiment_has_its_orders_and_is_shown(scale: str, tmp_path: Path) -> None:
    """In a table of its own, or among the methods of its setting; or it is pooled until nothing gets better."""
    found = shipped(scale, tmp_path)
    assert {f"train/{run}.json" for run in found.runs} <= set(resolve_texts(found))
    assert unshown(found) == {}


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_runs_that_one_table_compares_have_as_many_rounds(scale: str, tmp_path: Path) -> None:
    found = shipped(scale, tmp_path)
    for table in ("partitions", "cuts", "sizes"):
        rounds = {
            (found.runs[run].method, found.training_of(run).rounds)
            for run in found.tables[table]
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
    order = resolve_texts(shipped(scale, tmp_path))["page.json"]
    assert altered(TextPageOrder.model_validate(order), FEDNLP.settings) == frozenset()


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_clients_of_the_tagging_federation_train_for_five_steps(scale: str, tmp_path: Path) -> None:
    """At the laptop's scale 1,003 sentences of 30 clients: 33 or 34 each, in batches of 7."""
    found = shipped(scale, tmp_path)
    texts = {"laptop": 1003, "full": 12_543}[scale]
    assert len(batch_sizes(texts // 30, found.training_of("st-fedavg").batch_size)) >= LEAST_STEPS


# -- tuning --


def test_tuning_sees_no_test_text_and_trains_each_trial_once(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates first, which widen at their ends, then a knob at the rate that was chosen, then one run's own rate."""
    tried: list[tuple[str, float, float]] = []
    tested = {row["id"] for row in scores(made, "answers-fedprox")["1"]["examples"]}

    def losses(order: TextTraining, manifest: Any, index: Any, label: str) -> dict[str, float]:
        """The best rate is 4, the best mu 0.3."""
        assert not any(own["test"] for own in manifest.values())
        assert not [identity for identity in index.entries if identity in tested]
        mu = order.hyperparameters["mu"]
        tried.append((label.partition(",")[0], order.learning_rate, mu))
        return {"server": abs(order.learning_rate - 4) + abs(mu - 0.3)}

    monkeypatch.setattr(text_tuning, "_trained", losses)
    rates = {"answers": {"adamw": ["answers-fedprox", [1.0, 2.0]]}}
    knobs = {"answers": {"mu": ["answers-fedprox", [0.3, 0.5]]}}
    tune = {"seed": 1000, "rates": rates, "knobs": knobs, "own_rates": {"answers-fedprox": [2.0, 4.0, 8.0]}}
    copy = made.folder / "params.yaml"
    before = copy.read_text(encoding="utf-8")
    copy.write_text(yaml.safe_dump(ALL | {"tune": tune}), encoding="utf-8")
    try:
        with made.entered():
            text_tuning.tune()
            first = list(tried)
            text_tuning.tune()
            with layout.TUNING_TABLE.open(encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
    finally:
        copy.write_text(before, encoding="utf-8")
    assert tried == first
    assert [rate for _, rate, _ in tried[:4]] == [1.0, 2.0, 4.0, 8.0]
    assert [(rate, mu) for _, rate, mu in tried[4:]] == [(4.0, 0.3), (4.0, 0.5), (2.0, 0.3), (8.0, 0.3)]
    assert [(row["knob"], float(row["value"])) for row in rows if row["chosen"] == "1"] == [
        ("learning_rate", 4.0),
        ("mu", 0.3),
        ("learning_rate", 4.0),
    ]
