"""Results of labelled texts as rows of tables, for pages and for CSV files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from pipeline.clients.batches import LEAST_STEPS, batch_sizes
from pipeline.clients.skews import SERVER
from pipeline.corpora.labelled import Labelled
from pipeline.evaluation import pooled
from pipeline.evaluation.intervals import mean_ratio
from pipeline.evaluation.pooled import BySeed, LabelCounts, value_of
from pipeline.evaluation.scores import read_rows
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.report.page import Rows
from pipeline.runs.result_files import Result
from pipeline.tasks.task import LOSS, Metric, load_task
from pipeline.workspace.record import Json

FEW = 8  # the most clients that a table names one by one
PAPERS = {"fedavg": "FedAvg", "fedprox": "FedProx", "fedopt": "FedOPT"}
"""What follows the setting in a run's name -> the paper's name of its method."""


@dataclass(frozen=True)
class Outcome:
    """A run's results: its row at the first seed, its task's metrics, and seed -> result."""

    row: RunRow
    metrics: Sequence[Metric]
    results: Mapping[int, Result]

    @property
    def metric(self) -> Metric:
        """The metric by which runs are compared."""
        return self.metrics[0]

    @cached_property
    def scored(self) -> BySeed:
        """Seed -> its test rows."""
        return {seed: read_rows(own["scores"]["examples"]) for seed, own in self.results.items()}

    def mean(self, metric: Metric) -> float:
        """A metric over all test texts, mean over seeds: the value of `pooled.with_interval`, without the interval."""
        return mean_ratio(pooled.combined([(1.0, self.scored)], metric))

    @property
    def sent(self) -> float:
        """Bytes of all rounds, both ways, mean over seeds."""
        history = [line for own in self.results.values() for line in own["history"]]
        return sum(float(line["bytes_up"]) + float(line["bytes_down"]) for line in history) / len(self.results)

    @cached_property
    def places(self) -> list[tuple[int, float]]:
        """(Place in the document, its share of all chosen units), the last of all other places; none of other tasks."""
        by_seed = [own["scores"]["places"] for own in self.results.values() if "places" in own["scores"]]
        counts = [sum(own) for own in zip(*by_seed, strict=True)]
        return [(place, count / sum(counts)) for place, count in enumerate(counts, 1)]

    @property
    def documents(self) -> float:
        """Training examples of the drawn clients, over all rounds and epochs, mean over seeds."""
        from pipeline.runs.training import clients_of_round  # imports torch, which other pages spare

        training, counts = self.row.training, []
        if training is None:
            return 0.0
        for seed, own in self.results.items():
            sizes = {client: size["train"] for client, size in own["sizes"].items() if size["train"]}
            rounds = range(1, 1 + max(int(line["round"]) for line in own["history"]))
            drawn = (clients_of_round(training.model_copy(update={"seed": seed}), sizes, number) for number in rounds)
            counts.append(training.local_epochs * sum(sizes[client] for clients in drawn for client in clients))
        return fmean(counts)

    def by_round(self, column: str = "validation_loss") -> dict[int, list[float]]:
        """Seed -> a column of its history by round, the mean over clients; seeds without any value are left out."""
        found = {}
        for seed, own in self.results.items():
            rounds: dict[int, list[float]] = {}
            for line in (line for line in own["history"] if line.get(column)):
                rounds.setdefault(int(line["round"]), []).append(float(line[column]))
            if rounds:
                found[seed] = [fmean(rounds[number]) for number in sorted(rounds)]
        return found


def metrics_of(order: ReportOrder) -> list[Metric]:
    """The metrics of the tasks of all data sets."""
    return [metric for module in order.data.values() for metric in load_task(module).metrics]


def score_of(run: Outcome, samples: int) -> Json:
    """A run's score with the ends of its interval, at least 0; they are empty for too few groups of texts."""
    shown = pooled.with_interval(run.scored, run.metric, samples)
    low, high = ("", "") if shown.is_point else (round(max(shown.low, 0.0), 2), round(shown.high, 2))
    return {run.metric.name: round(shown.value, 2), "low": low, "high": high}


def _mean(values: Sequence[float], digits: int = 2) -> float | str:
    """The mean; empty without values."""
    return round(fmean(values), digits) if values else ""


def method_row(run: Outcome, label_counts: Mapping[int, LabelCounts], samples: int) -> Json:
    """A run of Table 2: every metric, each seed's, the best round's, and over clients.

    A client is scored on its own test texts; where the server has all texts, on these, weighted by its labels.
    `not_judged`: the number of clients that no test text can score, the mean over seeds.
    """
    first, values, missing = run.metric, [], []
    for rows, counts in ((rows, label_counts[seed]) for seed, rows in run.scored.items() if label_counts.get(seed)):
        own_texts = any(row.client != SERVER for row in rows)
        own = pooled.of_own_texts(rows, first) if own_texts else pooled.per_client(rows, counts, first)
        values.append(list(own.values()))
        missing.append(len(counts) - len(own))
    at_best = {seed: own["scores"].get("best") for seed, own in run.results.items()}
    best = [read_rows(rows) if rows else run.scored[seed] for seed, rows in at_best.items()]
    return {
        "run": run.row.name,
        "method": run.row.method,
        **score_of(run, samples),
        **{one.name: round(run.mean(one), 2) for one in run.metrics[1:]},
        "by_seed": " / ".join(f"{value_of(rows, first):.1f}" for rows in run.scored.values()),
        "loss": _mean([value_of(rows, LOSS) for rows in run.scored.values() if LOSS.name in rows[0].values], 3),
        **({"documents": round(run.documents)} if run.places else {}),
        "at_best_round": _mean([value_of(rows, first) for rows in best]),
        "clients_mean": _mean([fmean(own) for own in values if own]),
        "worst_tenth": _mean([pooled.worst_tenth(own) for own in values if own]),
        "not_judged": f"{_mean(missing):g}" if any(missing) else "",
    }


def majority_row(run: Outcome, task: str, label_counts: LabelCounts) -> Json | None:
    """The accuracy of always predicting the most frequent class of training; None where labels do not give classes.

    `task`: its module, which says of which class a label is.
    """
    judge = load_task(task)
    if run.metric.name != "accuracy" or judge.kind is not Labelled:
        return None
    labels = {row.label for rows in run.scored.values() for row in rows}.union(*label_counts.values())
    texts = {label: Labelled(id="", split="train", owner="", group="", text="", label=label) for label in labels}
    classes = {label: judge.classes([text]) for label, text in texts.items()}
    if any(len(own) != 1 for own in classes.values()):
        return None
    counts = Counter(classes[label] for own in label_counts.values() for label in Counter(own).elements())
    major = min(counts, key=lambda one: (-counts[one], one))
    shares = [fmean(100.0 * (classes[row.label] == major) for row in rows) for rows in run.scored.values()]
    return {"run": f"always {major[0]}", "method": "majority", run.metric.name: _mean(shares)}


def with_paper(rows: Sequence[Json], setting: str, paper: Rows, task: str) -> list[Json]:
    """A setting's rows with the numbers of Table 2, x 100; without them for a task that it lacks."""
    if not task:
        return list(rows)
    of_task = [row for row in paper if (row["table"], row["task"]) == ("2", task)]
    known = {row["method"]: 100 * float(row["value"]) for row in of_task if row["metric"].endswith("_fraction")}
    named = [(row, PAPERS.get(row["run"].removeprefix(f"{setting}-"), "")) for row in rows]
    return [row | {"paper": round(known[name], 2) if name in known else ""} for row, name in named]


def data_row(name: str, about: Json, unlearned: int | None, task: str, paper: Rows) -> Json:
    """A row of Table 1: the counts of a data set, and the paper's counts for its task.

    `unlearned`: the number of sampled training texts without an answer; None: none was sampled.
    """
    theirs = [row for row in paper if row["table"] == "1" and row["task"] == task]
    counts = {row["metric"]: int(float(row["value"])) for row in theirs}
    return {
        "data_set": name,
        **{count: about.get(count, 0) for count in ("train", "val", "test", "left_out")},
        "test_in_train": about.get("equal", {}).get("test_in_train", ""),
        "without_answer": "" if unlearned is None else unlearned,
        "labels": "" if about["labels"] is None else about["labels"],
        "owners": about["owners"],
        "source": about["source"]["source"],
        "paper_data": theirs[0]["dataset"] if theirs else "",
        **{f"paper_{split}": counts.get(f"{split}_examples", "") for split in ("train", "test")},
        "paper_labels": counts.get("labels", ""),
    }


def federation_row(label_counts: LabelCounts, batch_size: int | None = None) -> Json:
    """How skewed a federation is.

    `least`, `most`: texts of its smallest and its largest client. `short`: the number of clients whose round has too
    few optimizer steps, if there is a training.
    """
    sizes = np.array([sum(counts.values()) for counts in label_counts.values()], dtype=float)
    distances = pooled.divergences(label_counts)
    apart = distances[~np.eye(len(distances), dtype=bool)]
    return {
        "clients": len(label_counts),
        "texts": int(sizes.sum()),
        "least": int(sizes.min()),
        "most": int(sizes.max()),
        "short": "" if batch_size is None else sum(len(batch_sizes(int(n), batch_size)) < LEAST_STEPS for n in sizes),
        "cv": round(float(sizes.std() / sizes.mean()), 3),
        "divergence_bits": round(float(apart.mean()), 3) if len(apart) else 0.0,
    }


def cost_row(run: Outcome, samples: int, paper: float | None = None) -> Json:
    """A row of Table 3 and Fig. 7: trainable numbers, MB sent, score."""
    return {
        "run": run.row.name,
        "frozen": run.row.learner.view.frozen if run.row.learner else "",
        "parameters": next(iter(run.results.values()))["parameters"],
        "sent_mb": round(run.sent / 1e6, 1),
        **score_of(run, samples),
        "paper": "" if paper is None else round(paper, 2),
    }


def client_row(run: Outcome) -> Json:
    """Natural clients, each on its own texts: means over the seeds at which it was scored."""
    by_seed = [pooled.of_own_texts(rows, run.metric) for rows in run.scored.values()]
    clients = sorted({client for own in by_seed for client in own})
    values = {client: fmean(own[client] for own in by_seed if client in own) for client in clients}
    return {
        "run": run.row.name,
        **({client: round(value, 2) for client, value in values.items()} if len(clients) <= FEW else {}),
        "clients_mean": _mean([*values.values()]),
        "worst_tenth": round(pooled.worst_tenth(list(values.values())), 2) if values else "",
    }
