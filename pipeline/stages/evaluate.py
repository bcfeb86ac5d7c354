"""A run's predictions, scored by example -> results/<run>.json.gz, at each of its seeds."""

from collections.abc import Sequence
from statistics import fmean

from pipeline.corpora.example import examples_of
from pipeline.plan.orders import EvaluateOrder, read_order
from pipeline.runs.result_files import read_result, result_of, text_hash, write_result
from pipeline.tasks.task import Prediction, chooses_units, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl
from pipeline.workspace.record import Json


def run(name: str, at: Sequence[int] = ()) -> None:
    """Score a run at each of its seeds, or at some, and write its result; those of other seeds then stay."""
    order = read_order(layout.order("evaluate", name), EvaluateOrder)
    if order.says_left_out(f"evaluate {name}"):
        write_result(layout.result(name), {"left_out": order.left_out, "seeds": {}})
        return
    task = load_task(order.task)
    examples = examples_of(order.data, task.kind)
    seeds: Json = {str(seed): result for seed, result in read_result(name).items()} if at else {}
    for seed in at or order.seeds:
        run_id = layout.run_id(name, seed)
        models = read_json(layout.models_behind(run_id))
        predicted = read_jsonl(layout.predictions(run_id))
        scored = _scored(order, predicted, examples)
        partition = read_json(layout.partition(order.setting, seed))
        labels, seen = partition["labels"], set(partition.get("seen", ()))
        rows = [_row(row, examples[row["id"]].group, labels.get(row["id"]), row["id"] in seen) for row in scored]
        scores: Json = {"clients": models["clients"], "examples": rows}
        if chooses_units(task):
            scores["places"] = task.places([(examples[row["id"]], row["prediction"]) for row in predicted])
        if models["best"]:
            scores["best"] = _scored(order, models["best"], examples)
        seeds[str(seed)] = {"fingerprint": order.fingerprints[seed]} | result_of(name, seed, order, scores)
    write_result(layout.result(name), {"seeds": seeds})


def _scored(order: EvaluateOrder, rows: Sequence[Json], examples: Json) -> list[Json]:
    """Each row's metrics instead of its text; rows of a run without predictions have a loss alone."""
    texts = ("query", "reference", "prediction", "ended")
    plain = [{key: value for key, value in row.items() if key not in texts} for row in rows]
    if any(row["prediction"] is None for row in rows):
        return plain
    predictions = [Prediction(row["prediction"], row["ended"]) for row in rows]
    of_rouge = {"use_stemmer": order.use_stemmer, "rouge_tokens": order.rouge_tokens}
    scores = load_task(order.task).score([examples[row["id"]] for row in rows], predictions, **of_rouge)
    found = [{**row, "text": text_hash(p.text), **own} for row, p, own in zip(plain, predictions, scores, strict=True)]
    return _over_models(found) if found and "model" in found[0] else found


def _over_models(rows: Sequence[Json]) -> list[Json]:
    """One row an example from those of several clients' models: the means of their figures, without texts."""
    by_id: dict[str, list[Json]] = {}
    for row in rows:
        by_id.setdefault(row["id"], []).append(row)
    keys, same = [key for key in rows[0] if key not in ("model", "text")], ("id", "client")
    return [{k: own[0][k] if k in same else fmean(row[k] for row in own) for k in keys} for own in by_id.values()]


def _row(row: Json, group: str, label: str | None, seen: bool) -> Json:
    """A test example's scores, with what resamples it and what weights it, and whether its text is trained on."""
    about = {"id": row["id"], "client": row["client"], "group": group}
    return about | ({"label": label} if label else {}) | ({"seen": True} if seen else {}) | row
