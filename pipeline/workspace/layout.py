"""All paths of the project; no other module spells one.

Paths that DVC tracks are relative to the workspace in which a stage runs. State that outlives a stage (`work/`, the
MLflow store, the mirror) is relative to `DVC_ROOT`: in `dvc exp run --temp` and in queued experiments the workspace is
a temporary copy, and state in it would be lost.

An experiment below `experiments/` is a separate workspace. It shares `work/` and the code with the root, which it finds
by `QUORUM_BASE`, the path from its folder to the root.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BASE = Path(os.environ.get("QUORUM_BASE", "."))
"""The path from the workspace to the repository's root: `.`, or from an experiment's folder `../..`."""

RESULT = BASE / "experiments/full"  # the experiment whose committed pages are the project's result
PARAMS = Path("params.yaml")
CHECKSUMS = BASE / "data/checksums"  # of published files: a list for each corpus that has one
SAMPLE = BASE / "data/sample"
OWN, PLAN = Path("data/own"), Path("data/plan")
PARTITIONS, ENCODED = Path("data/partitions"), Path("data/encoded")
MODELS = Path("models")
BACKBONES = MODELS / "backbones"
ABOUT_BACKBONE, WEIGHTS = "quorum.json", "model.safetensors"
"""In a backbone's folder: the weights' name and digest, and the weights."""

RESULTS = Path("results")  # the committed results of finished runs, a file each; of tuning; and people's ratings
TUNING_TABLE = RESULTS / "tuning.csv"
COMPARISONS = Path("comparisons.yaml")

REPORTS = Path("reports")
PREDICTIONS, RATING_SHEETS, ANALYSIS = REPORTS / "predictions", REPORTS / "ratings", REPORTS / "analysis"
POS_SHARES, WORD_SHARES = ANALYSIS / "pos_kd.csv", ANALYSIS / "word_shares.csv"
"""Which words are distilled, by part of speech; the shares of words that are distilled (Fig. 11)."""
TABLES, FIGURES = REPORTS / "tables", REPORTS / "figures"
MAIN_TABLE, SENSITIVITIES_TABLE = TABLES / "main.csv", TABLES / "sensitivities.csv"
COMPARISONS_TABLE, HISTORY = TABLES / "comparisons.csv", TABLES / "history.csv"
"""The effects of comparisons; every round of the runs."""
METRICS, REPORT = REPORTS / "metrics.json", REPORTS / "report.html"
GALLERY = REPORTS / "gallery.html"  # who has which examples, in every setting
EXAMPLES_PAGE = REPORTS / "examples.html"  # quotes texts, and is never committed


def home() -> Path:
    """The real repository, also inside an experiment's temporary copy of it."""
    return (Path(os.environ.get("DVC_ROOT") or Path.cwd()) / BASE).resolve()


def workspace() -> Path:
    """The workspace's path in the repository: an experiment's folder, or `.` for the root."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd()).resolve().relative_to(home())


def is_copy() -> bool:
    """Whether this is a temporary copy of the workspace, for example of `dvc exp run --temp`."""
    return Path.cwd().resolve() != home() / workspace()


def work() -> Path:
    """State that outlives a stage: `QUORUM_WORK`, else `work/`."""
    return Path(os.environ.get("QUORUM_WORK") or home() / "work")


@dataclass(frozen=True)
class Pattern:
    """The path of a file below a root, whose braces are filled in with the names of what it belongs to."""

    text: str
    root: Callable[[], Path] = Path

    def __call__(self, *names: str | int) -> Path:
        return self.root() / self.text.format(*names)


paper = Pattern(f"{BASE.as_posix()}/data/{{}}")  # a paper's numbers, such as `paper_results.csv`
raw = Pattern("data/raw/{}")  # a source as it was published
source_record = Pattern("data/raw/{}/source.json")  # where a source is from, and its commit
examples = Pattern("data/prepared/{}/examples.jsonl")
notes = Pattern("reports/data/{}.json")  # a data set's source, and what preparing it corrected or left out
data_statistics = Pattern("reports/data/{}.csv")
backbone = Pattern("models/backbones/{}")
partition = Pattern("data/partitions/{}/{}.json")  # a setting's manifest at a seed, and each example's label
clients_of = Pattern("reports/analysis/clients/{}.json")
"""How many training examples of each label a setting's clients have, at each seed."""
encoded = Pattern("data/encoded/{}/{}.json")  # a setting's index of a run's examples in the store

adapters = Pattern("models/{}/adapters")  # the folder of the adapters of a run at one seed
checksums = Pattern("models/{}/sha256.json")  # the sha256 of each of a run's adapters and masks, saved by its training
history = Pattern("models/{}/history.csv")  # every round of a run's training, a row a client
events = Pattern("models/{}/events.csv")
"""Faults in a run's training and the reactions to them; only of trainings with faults or rules for them."""
masks = Pattern("models/{}/masks.safetensors")  # the target tokens that a run distilled, a bit each
trained_as = Pattern("models/{}/training.json")  # the key of the training of a run's adapters
predictions = Pattern("reports/predictions/{}.jsonl")  # a run's predictions, one a line
models_behind = Pattern("reports/predictions/{}.json")
"""Losses of a run's other models, scores of the best rounds', and the entropies of its teacher in a few texts."""
result = Pattern("results/{}.json.gz")
"""A run's scores by example, its rounds, and how it was computed, at each of its seeds."""

seed_metrics = Pattern("reports/metrics/seed-{}.json")
all_metrics = Pattern("reports/metrics/all.json")  # every figure of the runs over all seeds
identities = Pattern("reports/metrics/identities.json")
ratings_table = Pattern("results/ratings.csv")
rating_key = Pattern("results/ratings/{}.json")  # the key of a rating sheet: which run's summary is on which side

store, downloads = Pattern("store", work), Pattern("downloads", work)
smoke_copy = Pattern("smoke", work)  # the copy of the workspace in which `make smoke` runs
checkpoints, checkpoint_lock = Pattern("checkpoints", work), Pattern("checkpoints/{}.lock", work)
"""The checkpoints of trainings, a folder each; the lock of one, for training and for removing it."""
rounds, round_adapter = Pattern("rounds", work), Pattern("rounds/{}/round-{}/{}.safetensors", work)
"""Models of every round, of trainings with `keep_rounds`: by training, round, and client or server."""
generated = Pattern("generated", work)  # cached predictions, by the hash of their cause
mlflow_artifacts = Pattern("mlartifacts", home)


def run_id(name: str, seed: int) -> str:
    """The id of a run at one seed, which is also the path of its files: `fedselectkd/1`."""
    return f"{name}/{seed}"


def order(*names: str) -> Path:
    """`data/plan/<stage>.json`, or `data/plan/<stage>/<item>.json` for a stage of a data set, a setting or a run."""
    return PLAN / f"{'/'.join(names)}.json"


def timing(*names: str) -> Path:
    """How long a stage took when it last ran; its name and its item as in `order`."""
    return work() / "timings" / workspace() / f"{'/'.join(names)}.json"


def last_plan() -> Path:
    """Hashes of the last plan's orders, to report what a new plan changes."""
    return work() / "plans" / workspace() / "plan.json"


def adapter(run: str, owner: str, which: str = "") -> Path:
    """A client's or the server's adapter: the evaluated one, or `teacher`, `before`, `last`, `local`, `server`."""
    return adapters(run) / (f"{owner}.{which}.safetensors" if which else f"{owner}.safetensors")


def run_of(path: Path) -> str | None:
    """The run to which a file of adapters or masks belongs; None for a file outside of `MODELS`.

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


def mirror() -> Path | None:
    """The folder of real corpora: `QUORUM_MIRROR`, else `../shared/corpora` where it exists."""
    named = os.environ.get("QUORUM_MIRROR")
    if named is not None:
        return Path(named) if named else None
    shared = home().parent / "shared" / "corpora"
    return shared if shared.is_dir() else None


def mlflow_uri() -> str:
    """The address of MLflow's database."""
    return f"sqlite:///{home() / 'mlflow.db'}"
