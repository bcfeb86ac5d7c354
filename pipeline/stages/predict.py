"""A run's models on test examples -> reports/predictions/<run>: an example a line, and losses of other models."""

from collections.abc import Iterator, Sequence

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import examples_of
from pipeline.plan.orders import PredictOrder, read_order
from pipeline.runs.index import read_manifest
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json, write_jsonl
from pipeline.workspace.record import Json


def run(name: str, seeds: Sequence[int] = ()) -> None:
    """Write a run's predictions at each of its seeds, or at some: its models', those of a rule, or losses alone."""
    order = read_order(layout.order("predict", name), PredictOrder)
    if order.says_left_out(f"predict {name}", layout.PREDICTIONS / name):
        return
    if not seeds:
        empty_folder(layout.PREDICTIONS / name)
    examples = examples_of(order.data, load_task(order.task).kind)
    answers = _answers if order.turns is None else _chosen
    for run_id, rows, models in answers(name, order, seeds or order.seeds, examples):
        write_jsonl(layout.predictions(run_id), rows)
        write_json(layout.models_behind(run_id), models)


def _chosen(
    name: str, order: PredictOrder, seeds: Sequence[int], examples: Json
) -> Iterator[tuple[str, list[Json], Json]]:
    """Run id, rows of predictions, and what is behind them."""
    from pipeline.runs.rules import writer_of

    for seed in seeds:
        manifest = read_manifest(order.setting, seed)
        write = writer_of(name, order, seed, manifest)
        tests = [(c, i) for c, own in manifest.items() for i in own["test"]]
        rows = [_about(i, c, examples[i]) | {"prediction": write(examples[i]), "ended": True} for c, i in tests]
        yield layout.run_id(name, seed), rows, {"clients": {}, "best": [], "lens": []}


def _answers(
    name: str, order: PredictOrder, seeds: Sequence[int], examples: Json
) -> Iterator[tuple[str, list[Json], Json]]:
    """As `_chosen`, of the run's models."""
    from pipeline.runs.jobs import BEST, jobs_of
    from pipeline.runs.learners import model_of
    from pipeline.runs.predicting import Predictor

    assert order.learner is not None
    predictor = Predictor(order.learner, model_of(order.learner), examples)
    by_seed = {seed: jobs_of(layout.run_id(name, seed)) for seed in seeds}
    predictor.texts([job for jobs in by_seed.values() for job in jobs])
    for jobs in by_seed.values():
        made = {job.which: predictor.predict(job) for job in jobs}
        job = jobs[0]
        rows = [
            _about(e.id, c, examples[e.id]) | ({"model": which} if which else {}) | answers[e.id]
            for which, answers in made.items()
            for c, e in job.tests
            if which != BEST
        ]
        best = [{"id": e.id, "client": c, **made[BEST][e.id]} for c, e in job.tests] if BEST in made else []
        yield job.run_id, rows, {"clients": predictor.other_losses(job), "best": best, "lens": predictor.lens(job)}


def _about(identity: str, client: str, example: object) -> Json:
    """An example's id and client, and of a conversation what people compare a prediction with."""
    compared = {"query": example.query, "reference": example.target} if isinstance(example, Conversation) else {}
    return {"id": identity, "client": client} | compared
