"""Logs runs on labelled texts in MLflow, from files, by a run's identity."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.errors import QuorumError
from pipeline.plan.text_orders import TextPageOrder, TextRow
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table
from pipeline.workspace.tracking import PARENT_TAG, Store, failures

PER_ROUND = ("train_loss", "validation_loss", "steps", "bytes_down", "bytes_up")


def project(order: TextPageOrder, scores: Mapping[str, Mapping[int, Mapping[str, float]]]) -> None:
    """Log every run that is not in the store yet; a failure is only reported, since the results are files."""
    try:
        with failures():
            store = Store()
            experiment = layout.workspace().name
            parent, complete = store.run(sha256_json([experiment, order.scale]), f"{experiment} {order.scale}", dict)
            if not complete:
                store.finish(parent)
            new = sum(
                _project(store, parent, order, row, seed, scores[row.name][seed])
                for row in order.runs
                for seed in row.seeds
            )
    except QuorumError as error:
        say(f"track: the results are there, MLflow is not up to date: {error}")
        return
    say(f"track: {new} runs brought into {layout.mlflow_uri()}")


def _project(
    store: Store, parent: str, order: TextPageOrder, row: TextRow, seed: int, scores: Mapping[str, float]
) -> bool:
    run_id = layout.run_on_texts(row.name, seed)
    skew = order.settings[row.setting].model_dump(mode="json", exclude={"data"})
    identity = sha256_json([run_id, skew, read_json(layout.trained_as(run_id)), dict(scores)])
    tags = {"method": row.method, "setting": row.setting, "seed": str(seed), PARENT_TAG: parent}
    run, complete = store.run(identity, f"{row.name}-{seed}", lambda: tags)
    if complete:
        return False
    knobs = row.training.model_dump(mode="json")
    who = {f"setting.{key}": value for key, value in skew.items() if value is not None}
    about = {"method": row.method, "dataset": row.dataset, "setting": row.setting, **who}
    store.params(run, {**about, **knobs.pop("hyperparameters"), **knobs, "seed": seed})
    for one in read_table(layout.history(run_id)):
        values = {f"{one['client']}/{name}": float(one[name]) for name in PER_ROUND if one.get(name)}
        store.metrics(run, values, int(one["round"]))
    if layout.events(run_id).is_file():
        store.events(run, read_table(layout.events(run_id)))
        store.artifact(run, layout.events(run_id), "events")
    store.metrics(run, {f"test/{name}": value for name, value in scores.items()})
    for path in sorted(layout.adapters(run_id).glob("*.safetensors")):
        store.artifact(run, path, "adapters")
    store.finish(run)
    return True
