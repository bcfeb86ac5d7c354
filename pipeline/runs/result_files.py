"""results/<group>/<run>-<seed>.json.gz: a finished run's committed result, one compressed file for each run and seed.

A long experiment takes days and machines. Adapters, prefixes and summaries stay on the machine that computed them; from
these files every table, figure and page is rendered, without texts, weights or training.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.errors import QuorumError
from pipeline.plan.orders import EncodeOrder, RunRow, read_order
from pipeline.runs.index import read_encoded, target_limit
from pipeline.runs.trained import timed_training
from pipeline.runs.truncation import cut_of
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_bytes
from pipeline.workspace.tables import read_table

RETRAIN = "QUORUM_RETRAIN"
"""If this variable is 1, a run with a result in results/ may be trained again."""
CPU = Path("/proc/cpuinfo")

Result = Mapping[str, Any]
"""`fingerprint`, `commit`, `machine`, `precision`, `threads`, `source`, `cut`, `training`, `training_seconds`;
`scores`: {`clients`, `examples`}; `history`: rows."""
NEEDED = ("fingerprint", "precision", "source", "cut", "scores", "history")
"""What pages read of a result."""


def save_result(row: RunRow, scores: Mapping[str, Any]) -> None:
    """Write a run's result from its scores, its rounds and its plan."""
    encoding = read_order(layout.order("encode", layout.group_of(row.id)), EncodeOrder)
    index = read_encoded(row.id).index
    about = {
        "fingerprint": row.fingerprint,
        "commit": current_commit(),
        "machine": _machine(),
        "precision": encoding.precision,
        "threads": encoding.threads,
        "source": {corpus: read_json(layout.notes(corpus))["source"] for corpus in encoding.corpora},
        "cut": asdict(cut_of(index, target_limit(row.id))),
        "training": read_json(layout.trained_as(row.id))["training"],
        "training_seconds": timed_training(row.id).get("seconds"),
    }
    write_result(layout.result(row.id), about | {"scores": scores, "history": read_table(layout.history(row.id))})


def write_result(path: Path, result: Result) -> None:
    """Write a result, compressed; equal results are equal bytes."""
    write_bytes(path, gzip.compress(json.dumps(result, separators=(",", ":")).encode(), mtime=0))


def read_result(path: Path) -> dict[str, Any]:
    """Read a run's result.

    Raises:
        QuorumError: the file is missing or damaged, or lacks a key.
    """
    try:
        result = json.loads(gzip.decompress(path.read_bytes()))
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; run `dvc repro`") from None
    except (OSError, EOFError, ValueError):
        raise QuorumError(f"{path}: is damaged; run `git checkout {path}` or `dvc repro`") from None
    if absent := [key for key in NEEDED if not isinstance(result, dict) or key not in result]:
        raise QuorumError(f"{path}: is damaged (no {absent[0]}); run `git checkout {path}` or `dvc repro`")
    return dict(result)


def has_result(row: RunRow) -> bool:
    """Whether results/ has the planned run: the same knobs and setting, of any version of the code."""
    path = layout.result(row.id)
    return path.is_file() and read_result(path)["fingerprint"] == row.fingerprint


def read_results_of(rows: Iterable[RunRow]) -> dict[str, dict[str, Any]]:
    """Read run id -> result, of the planned runs that have one.

    Raises:
        QuorumError: there is none, or results of two precisions would share a table.
    """
    files = {row.id: read_result(layout.result(row.id)) for row in rows if has_result(row)}
    if not files:
        raise QuorumError(f"{layout.RESULTS}: has no result of a planned run; run `dvc repro`")
    precisions = {result["precision"]: run for run, result in files.items()}
    if len(precisions) > 1:
        named = " and ".join(f"{run} in {precision}" for precision, run in sorted(precisions.items()))
        raise QuorumError(f"{layout.RESULTS}: {named}: one table has one precision; remove the results of one")
    return files


def deleted_results(rows: Iterable[RunRow]) -> list[str]:
    """List the result files of planned runs that git has and the workspace lacks; none outside git."""
    listed = ["git", "ls-files", "--deleted", "--", str(layout.RESULTS)]
    found = subprocess.run(listed, capture_output=True, text=True, check=False).stdout.splitlines()
    return [path for path in dict.fromkeys(str(layout.result(row.id)) for row in rows) if path in found]


def refuse_to_retrain(row: RunRow) -> None:
    """Refuse to train a run whose result is in git without a dvc.lock: DVC cannot know that it is finished.

    Raises:
        QuorumError: git has a result of this run, and no dvc.lock.
    """
    path = layout.result(row.id)
    if os.environ.get(RETRAIN) == "1" or not has_result(row) or not _is_tracked(path) or _is_tracked(Path("dvc.lock")):
        return
    raise QuorumError(f"{path}: has this run's result; to train it again, set {RETRAIN}=1 or delete the file")


def missing(rows: Sequence[RunRow]) -> list[str]:
    """List the last DVC stage of every planned run without a result, ordered by seed.

    Raises:
        QuorumError: one is missing, and there are results in another precision than this machine's.
    """
    waiting = [row for row in sorted(rows, key=lambda row: row.seed) if not _is_left_out(row) and not has_result(row)]
    for row in rows if waiting else ():
        if has_result(row):
            refuse_another_precision(layout.result(row.id), read_result(layout.result(row.id))["precision"], _here(row))
    return [stage_of(row) for row in waiting]


def refuse_another_precision(path: Path, there: str, here: str) -> None:
    """Refuse hours of work that could share no table with existing results.

    Raises:
        QuorumError: a file was computed in another precision than this plan's.
    """
    if there != here:
        raise QuorumError(f"{path}: was computed in {there}, and this plan says {here}; go on where {there} is native")


def stage_of(row: RunRow) -> str:
    """Return DVC's name of a run's last stage."""
    stage = "evaluate" if layout.group_of(row.id) == layout.MAIN else "evaluate-more"
    return f"{stage}@{row.name}-{row.seed}"


def _here(row: RunRow) -> str:
    return read_order(layout.order("encode", layout.group_of(row.id)), EncodeOrder).precision


def _is_left_out(row: RunRow) -> bool:
    return row.id in read_order(layout.order("encode", layout.group_of(row.id)), EncodeOrder).left_out


def _is_tracked(path: Path) -> bool:
    done = subprocess.run(["git", "ls-files", "--error-unmatch", str(path)], capture_output=True, check=False)
    return done.returncode == 0


def current_commit() -> str:
    """Return the short name of the checked-out commit; empty outside git."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _machine() -> str:
    """The processor, as in `AMD EPYC 9R14, 2 cores`."""
    text = CPU.read_text(encoding="utf-8") if CPU.is_file() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return f"{found[1].strip() if found else platform.processor() or platform.machine()}, {os.cpu_count()} cores"
