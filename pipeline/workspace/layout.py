"""Where everything lies. No other module spells a path of the project; files within a run's folder are its stage's.

Paths that DVC tracks are relative to the workspace that a stage runs in. State that outlives a stage
(`work/`, the MLflow store, the mirror) is anchored at `DVC_ROOT`: in `dvc exp run --temp` and in queued
experiments the workspace is a temporary copy, and what lay in it would be lost.

An experiment below `experiments/` is a workspace of its own: what it shares with the root's (prepared corpora, the
backbone, `work/`) it finds by `QUORUM_BASE`, the way from its folder to the root.
"""

from __future__ import annotations

import os
from pathlib import Path

BASE = Path(os.environ.get("QUORUM_BASE", "."))
"""The way from the workspace to the repository's root: no way at all, but from an experiment's folder."""

PARAMS = Path("params.yaml")
SAMPLE = BASE / "data/sample"
PAPER_RESULTS = BASE / "data/paper_results.csv"
FEDNLP_RESULTS = BASE / "data/fednlp_results.csv"
OWN = Path("data/own")
RATINGS = Path("data/ratings")

PLAN = Path("data/plan")
RAW = Path("data/raw")
PREPARED = BASE / "data/prepared"
PARTITIONS = Path("data/partitions")
ENCODED = Path("data/encoded")

TEXTS = Path("data/texts")
FEDERATIONS = Path("data/federations")
"""Of experiments on labelled texts: prepared texts, and who holds them."""

MODELS = Path("models")
BACKBONE = BASE / "models/backbone"
ABOUT_BACKBONE, WEIGHTS = "quorum.json", "model.safetensors"
"""In a backbone's folder: the weights' name and digest, and the weights."""

REPORTS = Path("reports")
PREDICTIONS = REPORTS / "predictions"
SCORES = REPORTS / "scores"
LENS = REPORTS / "lens"
RATING_SHEETS = REPORTS / "ratings"
ANALYSIS = REPORTS / "analysis"
RESULTS = Path("results")
"""What is committed of finished runs, a file each."""
EXAMPLES_PAGE = REPORTS / "examples.html"
"""Quotes texts, and is never committed."""
TABLES = REPORTS / "tables"
MAIN_TABLE, POS_SHARES = TABLES / "main.csv", TABLES / "pos_kd.csv"
COMPARISONS, COMPARISONS_TABLE = Path("comparisons.yaml"), TABLES / "comparisons.csv"
"""What is asked of an experiment's runs, and the effects that answer it."""
SENSITIVITIES_TABLE = TABLES / "sensitivities.csv"
TUNING_TABLE = TABLES / "tuning.csv"
FIGURES = REPORTS / "figures"
METRICS = REPORTS / "metrics.json"
REPORT = REPORTS / "report.html"
PAPER_REPORT = REPORTS / "paper.html"
"""Every table and figure of the paper; `REPORT` has the main table alone."""

HISTORY, WORD_SHARES = TABLES / "history.csv", TABLES / "word_shares.csv"
"""Every round of the main table's runs; the shares of words that are distilled (Fig. 11)."""
HISTORY_MORE = REPORTS / "metrics" / "more" / "history.csv"
"""Every round of all other runs."""

MAIN, MORE, TUNE, ON_TEXTS = "main", "more", "tune", "texts"
"""The groups of runs: those of the main table, all others, what `make tune` tries, and those on texts.

Each has folders of its own.
"""


def home() -> Path:
    """The real repository, also from inside an experiment's temporary copy of it."""
    return (Path(os.environ.get("DVC_ROOT") or Path.cwd()) / BASE).resolve()


def workspace() -> Path:
    """The workspace below the repository: an experiment's folder, else nothing."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd()).resolve().relative_to(home())


def is_copy() -> bool:
    """Whether this is a temporary copy of the workspace, as of `dvc exp run --temp`."""
    return Path.cwd().resolve() != home() / workspace()


def work() -> Path:
    """Git-ignored state that outlives a stage: the prefix store, checkpoints, timings, downloads."""
    return home() / "work"


def store() -> Path:
    return work() / "store"


def prompts() -> Path:
    """What decoding needs of some test texts besides."""
    return work() / "prompts"


def try_copy() -> Path:
    """The copy of the workspace in which `make try` runs."""
    return work() / "try"


def checkpoints() -> Path:
    return work() / "checkpoints"


def rounds() -> Path:
    """The models of every round, of those trainings that keep them."""
    return work() / "rounds"


def round_adapter(training: str, number: int, owner: str) -> Path:
    return rounds() / training / f"round-{number}" / f"{owner}.safetensors"


def generated() -> Path:
    return work() / "generated"


def evaluated() -> Path:
    return work() / "evaluated"


def checkpoint_lock(training: str) -> Path:
    """Held by who trains, and by who removes what was trained."""
    return checkpoints() / f"{training}.lock"


def timing(stage: str, item: str | None = None) -> Path:
    """How long a stage took when it last ran: `item` as in `order`."""
    return work() / "timings" / workspace() / (f"{stage}.json" if item is None else f"{stage}/{item}.json")


def downloads() -> Path:
    return work() / "downloads"


def mirror() -> Path | None:
    """The folder of real corpora: `QUORUM_MIRROR`, else `../shared/corpora` where it exists."""
    named = os.environ.get("QUORUM_MIRROR")
    if named is not None:
        return Path(named) if named else None
    beside = home().parent / "shared" / "corpora"
    return beside if beside.is_dir() else None


def mlflow_uri() -> str:
    return f"sqlite:///{home() / 'mlflow.db'}"


def mlflow_artifacts() -> Path:
    return home() / "mlartifacts"


def order(stage: str, item: str | None = None) -> Path:
    """`data/plan/<stage>.json`, or `data/plan/<stage>/<item>.json` for a stage of a corpus, a group or a run."""
    return PLAN / f"{stage}.json" if item is None else PLAN / stage / f"{item}.json"


def run_id(group: str, name: str, seed: int) -> str:
    """One run at one seed, and where all that belongs to it lies: `main/fedselectkd-1`."""
    return f"{group}/{name}-{seed}"


def group_of(run: str) -> str:
    return run.split("/")[0]


def raw(corpus: str) -> Path:
    return RAW / corpus


def source_record(corpus: str) -> Path:
    """Which source a corpus came from, and of which commit."""
    return raw(corpus) / "source.json"


def examples(corpus: str) -> Path:
    return PREPARED / corpus / "examples.jsonl"


def notes(corpus: str) -> Path:
    """What preparing a corpus had to mend, and where the corpus came from."""
    return PREPARED / corpus / "notes.json"


def seed_metrics(group: str, seed: int) -> Path:
    """What metrics.json says, of one seed alone."""
    return metrics_of_seeds(group) / f"seed-{seed}.json"


def metrics_of_seeds(group: str) -> Path:
    return REPORTS / "metrics" / group


def all_metrics(group: str) -> Path:
    """Every figure of a group's runs over all seeds."""
    return metrics_of_seeds(group) / "all.json"


def identities(group: str) -> Path:
    """What each run was of which a group's metrics speak."""
    return metrics_of_seeds(group) / "identities.json"


def figures(group: str) -> Path:
    return FIGURES / group


def data_statistics(corpus: str) -> Path:
    return BASE / TABLES / f"data_{corpus}.csv"


def encoded_index(run: str) -> Path:
    return ENCODED / f"{run}.json"


def manifest(group: str, setting: str, seed: int) -> Path:
    return manifest_file(group, f"{setting}-{seed}")


def manifest_file(group: str, name: str) -> Path:
    """`name`: that of a setting at a seed, as plans have it."""
    return PARTITIONS / group / f"{name}.json"


def adapters(run: str) -> Path:
    return MODELS / run / "adapters"


def adapter(run: str, owner: str, which: str = "") -> Path:
    """A client's adapter, or the server's: what is evaluated, or `teacher`, `before`, `last`, `local`, `server`."""
    return adapters(run) / (f"{owner}.{which}.safetensors" if which else f"{owner}.safetensors")


def checksums(run: str) -> Path:
    """The sha256 of each of a run's adapters and masks, saved by its training."""
    return MODELS / run / "sha256.json"


def run_of(path: Path) -> str | None:
    """The run whose adapter or masks a file has; None for a file outside of `MODELS`.

    >>> run_of(Path("models/main/fedavg-1/adapters/A.safetensors")), run_of(Path("models/texts/x/1/masks.safetensors"))
    ('main/fedavg-1', 'texts/x/1')
    """
    if not path.is_relative_to(MODELS):
        return None
    folder = path.parent.parent if path.parent.name == "adapters" else path.parent
    return folder.relative_to(MODELS).as_posix()


def run_on_texts(name: str, seed: int) -> str:
    """A run of an experiment on labelled texts at one seed: `texts/tc-fedavg/1`."""
    return f"{ON_TEXTS}/{name}/{seed}"


def at_seed(file: Path, seed: int) -> Path:
    """A file of which there is one a seed, as `data/own/mine-{seed}.json`; any other is itself.

    >>> at_seed(Path("data/own/mine-{seed}.json"), 2).name, at_seed(Path("data/own/mine.json"), 2).name
    ('mine-2.json', 'mine.json')
    """
    return file.with_name(file.name.replace("{seed}", str(seed)))


def workspace_file(file: Path) -> Path:
    """A file that an experiment's params.yaml names, as `data/own/tickets.csv`."""
    return home() / workspace() / file


def raw_texts(dataset: str) -> Path:
    return TEXTS / dataset / "texts.jsonl"


def texts_notes(dataset: str) -> Path:
    """Where a data set's texts came from, how many there are, and what was left out."""
    return TEXTS / dataset / "notes.json"


def backbone_of(name: str) -> Path:
    """One of several backbones of an experiment."""
    return MODELS / "backbones" / name


def encoded_texts(dataset: str) -> Path:
    """Which entries of the store a data set's texts are, for every model that reads them."""
    return ENCODED / f"{dataset}.json"


def federation(setting: str, seed: int) -> Path:
    """Who holds which texts."""
    return FEDERATIONS / setting / f"{seed}.json"


def history(run: str) -> Path:
    """Every round of a run's training, a row a client."""
    return MODELS / run / "history.csv"


def events(run: str) -> Path:
    """What went wrong in a run's training, and what was done about it; of a training with faults or rules for them."""
    return MODELS / run / "events.csv"


def masks(run: str) -> Path:
    """Which target tokens a run's objective singled out, a bit each: those that were distilled."""
    return MODELS / run / "masks.safetensors"


def trained_as(run: str) -> Path:
    """The key of the training that a run's adapters are from."""
    return MODELS / run / "training.json"


def result(run: str) -> Path:
    """A finished run's scores by example, its rounds, and how it was computed."""
    return RESULTS / f"{run}.json.gz"


def scores(run: str) -> Path:
    """The scores of a run on labelled texts, by example."""
    return SCORES / f"{run}.json"


def lens(run: str) -> Path:
    """What a run's teacher is sure of in a few summaries."""
    return LENS / f"{run}.json"


def ratings_table() -> Path:
    """All ratings that came back."""
    return RATINGS / "ratings.csv"


def rating_key(sheet: str) -> Path:
    """Whose summary is on which side of a rating sheet."""
    return RATINGS / "keys" / f"{sheet}.json"


def trial(key: str) -> Path:
    """What came of a trial of `make tune`; committed, as tuning takes hours."""
    return REPORTS / "tuning" / f"{key}.json"


def trial_lock(kept: Path) -> Path:
    """Held while a trial is made."""
    return work() / "tuning" / f"{kept.stem}.lock"


def last_plan() -> Path:
    """Hashes of the last plan's orders, to say what a new one changes."""
    return work() / "plans" / workspace() / "plan.json"


def predictions(run: str) -> Path:
    return PREDICTIONS / f"{run}.jsonl"
