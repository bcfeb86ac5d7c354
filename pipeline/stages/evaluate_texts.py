"""A run's models on its test texts -> reports/scores/texts/<run>.json: an example at a time, at each of its seeds."""

from __future__ import annotations

from typing import Any

from pipeline.evaluation.text_scores import value_of
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import TextEvaluateOrder
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import progress, say


def run(name: str) -> None:
    """Score a run at each of its seeds; a run of another scale gets an empty file."""
    order = read_order(layout.order("evaluate", name), TextEvaluateOrder)
    if order.left_out:
        write_json(layout.scores(f"{layout.ON_TEXTS}/{name}"), {})
        return
    from pipeline.runs.text_evaluation import TextEvaluator  # torch takes seconds, which a run of another scale saves

    evaluator, first = TextEvaluator(name, order), load_task(order.learner.task).metrics[0]
    found: dict[str, Any] = {}
    with progress(f"evaluate {name}", len(order.seeds)) as advance:
        for seed in order.seeds:
            found[str(seed)] = evaluator.scores_at(seed)
            advance(1)
    write_json(layout.scores(f"{layout.ON_TEXTS}/{name}"), found)
    values = [f"{value_of(own['examples'], first):.1f} (seed {seed})" for seed, own in found.items()]
    say(f"evaluate {name}: {first.title} {', '.join(values)}")
