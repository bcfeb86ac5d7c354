"""All paths of the project; no other module spells one.

Paths that DVC tracks are relative to the workspace in which a stage runs. State that outlives a stage (`work/`, the
MLflow store, the mirror) is relative to `DVC_ROOT`: in `dvc exp run --temp` and in queued experiments the workspace is
a temporary copy, and state in it would be lost.

An experiment below `experiments/` is a separate workspace. It shares `work/` and the code with the root, which it finds
by `QUORUM_BASE`, the path from its folder to the root.
"""

from __future__ import annotations

import os
from pathlib import Path

BASE = Path(os.environ.get("QUORUM_BASE", "."))
"""The path from the workspace to the repository's root: `.`, or from an experiment's folder `../..`."""

RESULT = BASE / "experiments/full"
"""The experiment whose committed pages are the project's result."""
PARAMS = Path("params.yaml")
CHECKSUMS = BASE / "data/checksums"
"""Of published files: a list for each corpus that has one."""
SAMPLE = BASE / "data/sample"
OWN = Path("data/own")

PLAN = Path("data/plan")
RAW = Path("data/raw")
PREPARED = Path("data/prepared")
PARTITIONS = Path("data/partitions")
ENCODED = Path("data/encoded")


MODELS = Path("models")
BACKBONES = MODELS / "backbones"
ABOUT_BACKBONE, WEIGHTS = "quorum.json", "model.safetensors"
"""In a backbone's folder: the weights' name and digest, and the weights."""

REPORTS = Path("reports")
PREDICTIONS = REPORTS / "predictions"
RATING_SHEETS = REPORTS / "ratings"
ANALYSIS = REPORTS / "analysis"
RESULTS = Path("results")
"""The committed results of finished runs, a file each; of tuning; and people's ratings."""
TUNING_TABLE = RESULTS / "tuning.csv"
EXAMPLES_PAGE = REPORTS / "examples.html"
"""Quotes texts, and is never committed."""
TABLES = REPORTS / "tables"
MAIN_TABLE = TABLES / "main.csv"
COMPARISONS, COMPARISONS_TABLE = Path("comparisons.yaml"), TABLES / "comparisons.csv"
"""The comparisons of an experiment's runs, and their effects."""
SENSITIVITIES_TABLE = TABLES / "sensitivities.csv"
FIGURES = REPORTS / "figures"
METRICS = REPORTS / "metrics.json"
REPORT = REPORTS / "report.html"
GALLERY = REPORTS / "gallery.html"
"""Who has which examples, in every setting."""
HISTORY = TABLES / "history.csv"
"""Every round of the runs."""
POS_SHARES, WORD_SHARES = ANALYSIS / "pos_kd.csv", ANALYSIS / "word_shares.csv"
"""Which words are distilled, by part of speech; the shares of words that are distilled (Fig. 11)."""


def home() -> Path:
    """Return the real repository, also inside an experiment's temporary copy of it."""
    return (Path(os.environ.get("DVC_ROOT") or Path.cwd()) / BASE).resolve()


def workspace() -> Path:
    """Return the workspace's path in the repository: an experiment's folder, or `.` for the root."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd()).resolve().relative_to(home())


def is_copy() -> bool:
    """Whether this is a temporary copy of the workspace, for example of `dvc exp run --temp`."""
    return Path.cwd().resolve() != home() / workspace()


def work() -> Path:
    """State that outlives a stage (prefix store, checkpoints, timings, downloads): `QUORUM_WORK`, else `work/`."""
    elsewhere = os.environ.get("QUORUM_WORK")
    return Path(elsewhere) if elsewhere else home() / "work"


def store() -> Path:
    """The prefix store."""
    return work() / "store"


def smoke_copy() -> Path:
    """The copy of the workspace in which `make smoke` runs."""
    return work() / "smoke"


def checkpoints() -> Path:
    """The checkpoints of trainings, a folder each."""
    return work() / "checkpoints"


def rounds() -> Path:
    """Models of every round, of trainings with `keep_rounds`."""
    return work() / "rounds"


def round_adapter(training: str, number: int, owner: str) -> Path:
    """The model of a client or the server after one round of a training."""
    return rounds() / training / f"round-{number}" / f"{owner}.safetensors"


def generated() -> Path:
    """Cached predictions, by the hash of their cause."""
    return work() / "generated"


def checkpoint_lock(training: str) -> Path:
    """The lock of a checkpoint, for training and for removing it."""
    return checkpoints() / f"{training}.lock"


def timing(stage: str, item: str | None = None) -> Path:
    """How long a stage took when it last ran: `item` as in `order`."""
    return work() / "timings" / workspace() / (f"{stage}.json" if item is None else f"{stage}/{item}.json")


def downloads() -> Path:
    """Downloaded weights and corpora."""
    return work() / "downloads"


def mirror() -> Path | None:
    """The folder of real corpora: `QUORUM_MIRROR`, else `../shared/corpora` where it exists."""
    named = os.environ.get("QUORUM_MIRROR")
    if named is not None:
        return Path(named) if named else None
    shared = home().parent / "shared" / "corpora"
    return shared if shared.is_dir() else None


def mlflow_uri() -> str:
    """The address of the MLflow store."""
    return f"sqlite:///{home() / 'mlflow.db'}"


def mlflow_artifacts() -> Path:
    """The files that MLflow stores for its runs."""
    return home() / "mlartifacts"


def order(stage: str, item: str | None = None) -> Path:
    """`data/plan/<stage>.json`, or `data/plan/<stage>/<item>.json` for a stage of a data set, a setting or a run."""
    return PLAN / f"{stage}.json" if item is None else PLAN / stage / f"{item}.json"


def run_id(name: str, seed: int) -> str:
    """The id of a run at one seed, which is also the path of its files: `fedselectkd/1`."""
    return f"{name}/{seed}"


def paper(name: str) -> Path:
    """A paper's numbers, such as `paper_results.csv`."""
    return BASE / "data" / name


def raw(corpus: str) -> Path:
    """A corpus as it was published."""
    return RAW / corpus


def source_record(corpus: str) -> Path:
    """The source of a corpus, and its commit."""
    return raw(corpus) / "source.json"


def examples(corpus: str) -> Path:
    """The prepared examples of a corpus, one a line."""
    return PREPARED / corpus / "examples.jsonl"


def notes(corpus: str) -> Path:
    """The data set's source, and what preparing it corrected or left out."""
    return REPORTS / "data" / f"{corpus}.json"


def seed_metrics(seed: int) -> Path:
    """The metrics of one seed."""
    return REPORTS / "metrics" / f"seed-{seed}.json"


def all_metrics() -> Path:
    """Every figure of the runs over all seeds."""
    return REPORTS / "metrics" / "all.json"


def identities() -> Path:
    """The identities of the runs behind the metrics."""
    return REPORTS / "metrics" / "identities.json"


def clients_of(setting: str) -> Path:
    """How many training examples of each label a setting's clients have, at each seed."""
    return ANALYSIS / "clients" / f"{setting}.json"


def data_statistics(corpus: str) -> Path:
    """The statistics of a data set, of Table II for a corpus of meetings."""
    return REPORTS / "data" / f"{corpus}.csv"


def encoded(setting: str, run: str) -> Path:
    """The index of a run's examples in the store."""
    return ENCODED / setting / f"{run}.json"


def partition(setting: str, seed: int) -> Path:
    """A setting's manifest at a seed, and each example's label."""
    return PARTITIONS / setting / f"{seed}.json"


def adapters(run: str) -> Path:
    """The folder of a run's adapters."""
    return MODELS / run / "adapters"


def adapter(run: str, owner: str, which: str = "") -> Path:
    """A client's or the server's adapter: the evaluated one, or `teacher`, `before`, `last`, `local`, `server`."""
    return adapters(run) / (f"{owner}.{which}.safetensors" if which else f"{owner}.safetensors")


def checksums(run: str) -> Path:
    """The sha256 of each of a run's adapters and masks, saved by its training."""
    return MODELS / run / "sha256.json"


def run_of(path: Path) -> str | None:
    """Return the run to which a file of adapters or masks belongs; None for a file outside of `MODELS`.

    >>> run_of(Path("models/fedavg/1/adapters/A.safetensors")), run_of(Path("models/fedavg/1/masks.safetensors"))
    ('fedavg/1', 'fedavg/1')
    """
    if not path.is_relative_to(MODELS):
        return None
    folder = path.parent.parent if path.parent.name == "adapters" else path.parent
    return folder.relative_to(MODELS).as_posix()


def at_seed(file: Path, seed: int) -> Path:
    """Fill in the seed of a path with one file for each seed, such as `data/own/mine-{seed}.json`.

    >>> at_seed(Path("data/own/mine-{seed}.json"), 2).name, at_seed(Path("data/own/mine.json"), 2).name
    ('mine-2.json', 'mine.json')
    """
    return file.with_name(file.name.replace("{seed}", str(seed)))


def workspace_file(file: Path) -> Path:
    """A file that an experiment's params.yaml names, such as `data/own/tickets.csv`, in the real workspace."""
    return home() / workspace() / file


def backbone(name: str) -> Path:
    """The weights and the tokenizer of a backbone."""
    return BACKBONES / name


def history(run: str) -> Path:
    """Every round of a run's training, a row a client."""
    return MODELS / run / "history.csv"


def events(run: str) -> Path:
    """Faults in a run's training and the reactions to them; only of trainings with faults or rules for them."""
    return MODELS / run / "events.csv"


def masks(run: str) -> Path:
    """The target tokens that a run distilled, a bit each."""
    return MODELS / run / "masks.safetensors"


def trained_as(run: str) -> Path:
    """The key of the training of a run's adapters."""
    return MODELS / run / "training.json"


def result(name: str) -> Path:
    """A run's scores by example, its rounds, and how it was computed, at each of its seeds."""
    return RESULTS / f"{name}.json.gz"


def models_behind(run: str) -> Path:
    """Losses of a run's other models, scores of the best rounds', and the entropies of its teacher in a few texts."""
    return PREDICTIONS / f"{run}.json"


def ratings_table() -> Path:
    """All ratings of returned sheets."""
    return RESULTS / "ratings.csv"


def rating_key(sheet: str) -> Path:
    """The key of a rating sheet: which run's summary is on which side."""
    return RESULTS / "ratings" / f"{sheet}.json"


def last_plan() -> Path:
    """Hashes of the last plan's orders, to report what a new plan changes."""
    return work() / "plans" / workspace() / "plan.json"


def predictions(run: str) -> Path:
    """A run's predictions, one a line."""
    return PREDICTIONS / f"{run}.jsonl"
