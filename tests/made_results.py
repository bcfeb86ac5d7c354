"""Plans and results of runs as if they had been made: what the tests of pages, of results and of comparisons share."""

import html
import re
from collections.abc import Sequence
from typing import Any

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures
from pipeline.federated.history import Round
from pipeline.plan.learner import Learner, Training, View
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.runs.result_files import write_result
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric
from pipeline.workspace import layout

AVERAGE = Metric("average", "average ROUGE", "F1 x 100", "more", 2)
SUMMARIZE, CLASSIFY = "pipeline.tasks.summarize", "pipeline.tasks.classify"
VIEW = View(backbone="tiny-llama", adapted_layers=2, source_tokens=448, target_tokens=160)
LEARNER = Learner(task=SUMMARIZE, view=VIEW, above="bottleneck", size=16, device="cpu", precision="fp32", threads=1)
SELECT = "pipeline.federated.algorithms.fedselectkd"
HOW: dict[str, Any] = {"seed": 1, "rounds": 2, "batch_size": 4, "learning_rate": 0.001}
TRAINING = Training(learner=LEARNER, algorithm=SELECT, hyperparameters={}, **HOW)


def row_of(name: str, seed: int = 1, **changes: Any) -> RunRow:
    """A run at one seed, whose clients' own models are evaluated."""
    known = {
        "id": layout.run_id(name, seed), "name": name, "seed": seed, "method": "AdaFedSelectKD",
        "part": "AdaFedSelectKD", "setting": "domains", "data": ["qmsum"], "learner": LEARNER,
        "fingerprint": "", "training": TRAINING, "patience": TRAINING.patience, "evaluate": "local",
    }  # fmt: skip
    return RunRow(**known | changes)


def run_of(name: str, seed: int = 1, **hyperparameters: Any) -> list[RunRow]:
    """The same with hyperparameters, as the only row of its run."""
    return [row_of(name, seed, training=TRAINING.model_copy(update={"hyperparameters": hyperparameters}))]


DOMAINS = {"data": "qmsum", "kind": "domains", "clients": ["A", "B"]}


def order_of(runs: Sequence[RunRow], **changes: Any) -> ReportOrder:
    """The order of a page on these runs, which are in one setting of one data set."""
    known = {
        "code": {}, "page": "main", "scale": "laptop", "precision": "fp32", "sign_flips": 200, "paper": None,
        "data": {"qmsum": SUMMARIZE}, "published": ["qmsum"], "settings": {"domains": DOMAINS}, "runs": list(runs),
        "knobs": {"train_fraction": 1.0, "validation_examples": None, "span_end": "inclusive"}, "sections": {},
        "backbone": "tiny-llama",
    }  # fmt: skip
    return ReportOrder.model_validate(known | changes)


def save_results(*rows: RunRow, scores: Sequence[dict[str, Any]], **changes: Any) -> None:
    """Write the file of one run, with the same scores at each seed, and two rounds of its clients."""
    clients = list(dict.fromkeys(one["client"] for one in scores))
    rounds = [round_of(n, client, 3.0 - n, best=n == 2, steps=1).to_row() for n in (1, 2) for client in clients]
    losses = {client: {"last_loss": 2.5} for client in clients if rows[0].training}
    result = {
        "fingerprint": rows[0].fingerprint,
        "precision": rows[0].learner and rows[0].learner.precision,
        "source": {name: {"source": "mirror", "commit": None} for name in rows[0].data},
        "cut": {"examples": 2, "cut": 0, "of_tokens": 1.0, "of_transcript": 1.0, "full": 0, "limit": 160},
        "sizes": {client: {"train": 8, "val": 2, "test": 2} for client in clients},
        "scores": {"clients": losses, "examples": list(scores)},
        "history": [{k: "" if v is None else str(v) for k, v in one.items()} for one in rounds],
    }
    result |= {"unlearned": 0, "parameters": 10, "backbone_bytes": 1000, "events": {}, "training": rows[0].name}
    write_result(layout.result(rows[0].name), {"seeds": {str(row.seed): result | changes for row in rows}})


def round_of(number: int, client: str, loss: float, seed: int = 1, **more: Any) -> Round:
    """A round of one client, with its validation loss; `figures` are the objective's."""
    return Round(seed, number, client, validation_loss=loss, **more)


def figures(examples: int = 1, *, spread: float = 0.0, **metrics: float) -> Figures:
    """A client's figures; every interval reaches `spread` to both sides of its value."""
    return Figures(examples, {name: Interval(v, v - spread, v + spread, spread / 2) for name, v in metrics.items()})


def results_of(**parts: Any) -> Results:
    names = ("rows", "scored", "scored_by_seed", "metrics", "by_seed", "histories")
    return Results(**{name: parts.get(name, {}) for name in names})


def table_rows(page: str) -> list[list[str]]:
    """The rows of all tables of a page or piece: the text of each cell, its small print after a space."""
    rows = (re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in re.findall(r"(?s)<tr.*?</tr>", page))
    return [[html.unescape(re.sub(r"<[^>]*>", " ", cell)).strip() for cell in row] for row in rows]
