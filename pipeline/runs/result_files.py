"""results/<run>.json.gz: a finished run's committed result, one compressed file for each run, with all of its seeds.

A long experiment takes days and machines. Adapters, prefixes and summaries stay on the machine that computed them; from
these files every table, figure and page is rendered, without texts, weights or training.
"""

import gzip
import json
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from pipeline.clients.manifest import Manifest
from pipeline.errors import QuorumError
from pipeline.model.tensor_file import count_of_tensors
from pipeline.plan.orders import EvaluateOrder, RunRow
from pipeline.runs.index import Index, read_index, read_manifest, timed_training, trained_key
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_bytes
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table

RETRAIN = "QUORUM_RETRAIN"  # if this variable is 1, a run with a result in results/ may be trained again
CPU = Path("/proc/cpuinfo")

Result = Json
"""One seed's: `fingerprint`, `commit`, `machine` (where it was scored), `precision`, `threads`, `source`, `cut`,
`training`, `training_seconds`; `scores`: {`clients`, `examples`}; `history`: rows."""
MADE_ON = ("commit", "machine")
NEEDED = ("fingerprint", "precision", "source", "cut", "scores", "history")  # what pages read of a result
UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError)


def identity_of(row: RunRow, training: str | None) -> str:
    """Hash what a run at one seed is, so that MLflow logs nothing twice: its place, its knobs, its training's key."""
    return sha256_json([layout.workspace().as_posix(), row.id, row.fingerprint, training])


@dataclass(frozen=True)
class Cut:
    """Truncation over all splits of one run's examples at a seed.

    `cut`: the number of `examples` that were truncated. `of_tokens`: the share of all transcripts' tokens read;
    `of_transcript`: the mean share of a transcript. `full`: the number of references that fill all `limit` tokens, end
    token included; a reference that was cut has exactly so many, like one that just fits.
    """

    examples: int
    cut: int
    of_tokens: float
    of_transcript: float
    full: int
    limit: int


def cut_of(index: Index, manifest: Manifest, limit: int) -> Cut:
    """Measure the truncation of a run's examples, of whose references `limit` tokens are read at most."""
    ids = [i for own in manifest.values() for split in own.values() for i in split]
    read = [index.read[i] for i in ids]
    total, kept = (sum(own) for own in zip(*read, strict=True))
    shares = [part / there for there, part in read if there] or [1.0]
    cut, full = sum(part < there for there, part in read), sum(index.entries[i][0].tokens == limit for i in ids)
    return Cut(len(ids), cut, kept / total if total else 1.0, fmean(shares), full, limit)


def text_hash(text: str) -> str:
    """The hash by which results and human ratings know a predicted text."""
    return sha256_json(text)[:12]


def result_of(name: str, seed: int, order: EvaluateOrder, scores: Json) -> Result:
    """A run's result at one seed, but for its fingerprint, from its scores, its rounds and its order."""
    manifest, learner, run_id = read_manifest(order.setting, seed), order.learner, layout.run_id(name, seed)
    adapters = sorted(layout.adapters(run_id).glob("*.safetensors"))
    events = read_table(layout.events(run_id)) if layout.events(run_id).is_file() else []
    cut, unlearned, weights = None, 0, None
    if learner is not None:
        index = read_index(order.setting, name)
        cut = asdict(cut_of(index, manifest, learner.view.target_tokens))
        trained = [identity for own in manifest.values() for identity in own["train"]]
        unlearned = len(trained) - len(index.learned(trained))
        weights = (layout.backbone(learner.view.backbone) / layout.WEIGHTS).stat().st_size
    return {
        "commit": current_commit(),
        "machine": _machine(),
        "precision": learner and learner.precision,
        "threads": learner and learner.threads,
        "source": {one: read_json(layout.notes(one))["source"] for one in order.data},
        "cut": cut,
        "sizes": {client: {split: len(ids) for split, ids in own.items()} for client, own in manifest.items()},
        "unlearned": unlearned,
        "parameters": count_of_tensors(adapters[0]) if adapters else 0,
        "backbone_bytes": weights,
        "events": dict(Counter(one["kind"] for one in events)),
        "training": trained_key(run_id),
        "training_seconds": timed_training(run_id).get("seconds"),
        "scores": scores,
        "history": read_table(layout.history(run_id)),
    }


def write_result(path: Path, result: Json) -> None:
    """Write a run's result, compressed. A seed's result that is as before keeps its commit and machine.

    Of a training whose seconds this machine does not know, the seconds stay.
    """
    try:
        known = _seeds(path)
    except UNREADABLE:
        known = {}
    new = json.loads(json.dumps(result))
    for seed, own in new["seeds"].items():
        before = known.get(seed, {})
        if own.get("training_seconds") is None and own.get("training") == before.get("training"):
            own["training_seconds"] = before.get("training_seconds")
        if own == before | {key: value for key, value in own.items() if key in MADE_ON}:
            new["seeds"][seed] = before
    write_bytes(path, gzip.compress(json.dumps(new, separators=(",", ":")).encode(), mtime=0))


def _seeds(path: Path) -> dict[str, Result]:
    return {seed: dict(own) for seed, own in json.loads(gzip.decompress(path.read_bytes()))["seeds"].items()}


def read_result(name: str) -> dict[int, Result]:
    """Read a run's result by seed; empty without one. Raises QuorumError if the file is damaged, or lacks a key."""
    path = layout.result(name)
    remedy = f"run `git checkout {path}` or `dvc repro`"
    try:
        found = {int(seed): own for seed, own in _seeds(path).items()}
    except FileNotFoundError:
        return {}
    except UNREADABLE:
        raise QuorumError(f"{path}: is damaged; {remedy}") from None
    for own in found.values():
        if absent := [key for key in NEEDED if key not in own]:
            raise QuorumError(f"{path}: is damaged (no {absent[0]}); {remedy}")
    return found


def planned_results(rows: Iterable[RunRow]) -> dict[str, Result]:
    """Read run id -> result, of the planned runs that have one: the same knobs, of any version of the code."""
    read, found = cache(read_result), dict[str, Result]()
    for row in rows:
        own = read(row.name).get(row.seed)
        if own is not None and own["fingerprint"] == row.fingerprint:
            found[row.id] = own
    return found


def read_results_of(rows: Iterable[RunRow]) -> dict[str, Result]:
    """Read the results of a page. Raises QuorumError if there is none, or if two precisions would share a table."""
    found = planned_results(rows)
    if not found:
        raise QuorumError(f"{layout.RESULTS}: has no result of a planned run; run `dvc repro`")
    precisions = {result["precision"]: run for run, result in found.items() if result["precision"]}
    if len(precisions) > 1:
        named = " and ".join(f"{run} in {precision}" for precision, run in sorted(precisions.items()))
        raise QuorumError(f"{layout.RESULTS}: {named}: one table has one precision; remove the results of one")
    return found


def deleted_results(rows: Iterable[RunRow]) -> list[str]:
    """List the result files of planned runs that git has and the workspace lacks; none outside git."""
    found = _git("ls-files", "--deleted", "--", str(layout.RESULTS)).splitlines()
    return [path for path in dict.fromkeys(str(layout.result(row.name)) for row in rows) if path in found]


def refuse_to_retrain(row: RunRow) -> None:
    """Raise QuorumError if git has a result of this run but no dvc.lock, by which DVC would know it."""
    path = layout.result(row.name)
    tracked = _git("ls-files", "--", str(path), "dvc.lock").splitlines()
    if os.environ.get(RETRAIN) != "1" and tracked == [str(path)] and planned_results([row]):
        raise QuorumError(f"{path}: has this run's result; to train it again, set {RETRAIN}=1 or delete the file")


def missing(rows: Sequence[RunRow]) -> list[str]:
    """List the last DVC stage of every planned run that lacks a result at some seed.

    Raises QuorumError if one is missing, and there are results in another precision than this machine's.
    """
    found = planned_results(rows)
    waiting = dict.fromkeys(f"evaluate@{row.name}" for row in rows if not row.left_out and row.id not in found)
    for row in rows if waiting else ():
        if row.learner is not None and row.id in found:
            refuse_another_precision(layout.result(row.name), found[row.id]["precision"], row.learner.precision)
    return list(waiting)


def refuse_another_precision(path: Path, there: str, here: str) -> None:
    """Raise QuorumError if a file was computed in another precision than this plan's: they could share no table."""
    if there != here:
        raise QuorumError(f"{path}: was computed in {there}, and this plan says {here}; go on where {there} is native")


def current_commit() -> str:
    """Return the short name of the checked-out commit; empty outside git."""
    return _git("rev-parse", "--short", "HEAD")


def _git(*arguments: str) -> str:
    """What git prints; nothing where it fails, for example outside a repository."""
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.strip()


def _machine() -> str:
    """The processor, as in `AMD EPYC 9R14, 2 cores`."""
    found = re.search(r"^model name\s*: (.+)$", CPU.read_text() if CPU.is_file() else "", re.MULTILINE)
    return f"{found[1].strip() if found else platform.processor() or platform.machine()}, {os.cpu_count()} cores"
