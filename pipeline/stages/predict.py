"""A run's models on test examples -> reports/predictions/<run>: an example a line, and losses of other models."""

from __future__ import annotations

import time
from typing import Any

from pipeline.corpora.example import examples_of
from pipeline.plan.orders import PredictOrder, read_order
from pipeline.runs.index import read_manifest
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json, write_jsonl
from pipeline.workspace.record import Json


def run(name: str) -> None:
    """Write a run's predictions at each of its seeds: its models', turns of the source, or losses alone.

    Raises:
        QuorumError: the run is not trained, or a model is damaged.
    """
    began = time.monotonic()
    order = read_order(layout.order("predict", name), PredictOrder)
    empty_folder(layout.PREDICTIONS / name)
    if order.says_left_out(f"predict {name}"):
        write_json(layout.PREDICTIONS / name / "left_out.json", {"left_out": order.left_out})
        return
    examples = examples_of(order.data, load_task(order.task).kind)
    if order.turns is not None:
        _write_turns(name, order, examples)
    else:
        _write_answers(name, order, examples)
    write_json(layout.timing("predict", name), {"seconds": time.monotonic() - began})


def _write_turns(name: str, order: PredictOrder, examples: Json) -> None:
    from pipeline.runs.turns import WRITERS

    assert order.turns is not None
    write = WRITERS[order.turns]
    for seed in order.seeds:
        tests = [(c, i) for c, own in read_manifest(order.setting, seed).items() for i in own["test"]]
        rows = [_about(i, c, examples[i]) | {"prediction": write(examples[i]), "ended": True} for c, i in tests]
        write_jsonl(layout.predictions(layout.run_id(name, seed)), rows)
        write_json(layout.models_behind(layout.run_id(name, seed)), {"clients": {}, "best": [], "lens": []})


def _write_answers(name: str, order: PredictOrder, examples: Json) -> None:
    from pipeline.runs.jobs import BEST, EVALUATED, jobs_of
    from pipeline.runs.learners import model_of
    from pipeline.runs.predicting import Predictor

    assert order.learner is not None
    predictor = Predictor(order.learner, model_of(order.learner), examples)
    by_seed = {seed: jobs_of(layout.run_id(name, seed)) for seed in order.seeds}
    predictor.texts([job for jobs in by_seed.values() for job in jobs])
    for jobs in by_seed.values():
        made = {job.which: predictor.predict(job) for job in jobs}
        evaluated = next(job for job in jobs if job.which == EVALUATED)
        run_id = evaluated.run_id
        rows = [_about(e.id, c, examples[e.id]) | made[EVALUATED][e.id] for c, e in evaluated.tests]
        write_jsonl(layout.predictions(run_id), rows)
        best = [{"id": e.id, "client": c, **made[BEST][e.id]} for c, e in evaluated.tests] if BEST in made else []
        write_json(
            layout.models_behind(run_id),
            {"clients": predictor.other_losses(evaluated), "best": best, "lens": predictor.lens(evaluated)},
        )


def _about(identity: str, client: str, example: Any) -> Json:
    """An example's id and client, and of a conversation what people compare a prediction with."""
    asked = {"query": example.query, "reference": example.target} if hasattr(example, "query") else {}
    return {"id": identity, "client": client} | asked
