"""Copies of the workspace: one at another scale, whose small outputs are taken over, and one to try the pipeline in.

A copy has this commit and what git tracks of the changes since. `dvc exp run --temp` would be a fresh copy each time,
and fails where dvc.lock names what no cache holds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.plan.orders import MainOrder, read_order
from pipeline.plan.schema import read_params
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_bytes, write_text
from pipeline.workspace.progress import say

TAKEN = (
    layout.METRICS,
    layout.metrics_of_seeds(layout.MAIN),
    layout.figures(layout.MAIN),
    layout.MAIN_TABLE,
    layout.SIGNIFICANCE,
    layout.POS_SHARES,
    layout.REPORTS / layout.WORD_SHARES,
    layout.REPORTS / layout.HISTORY,
)
"""What is taken over besides the scores of the planned runs."""
TRY = {"data_source": "sample", "backbone": "tiny-llama", "max_tokens": "24"}
"""The sample's few short meetings, random weights: every file and page of the main table; its numbers mean nothing."""


def lay_full() -> None:
    """The copy for the main table on all of QMSum; cache, work/ and MLflow are the original's.

    Raises:
        QuorumError: params.yaml takes a part of the training examples, is wrong or lacks a knob, or git fails.
    """
    if re.search(r"^train_fraction:\s*(?!null)\S", layout.PARAMS.read_text(encoding="utf-8"), re.MULTILINE):
        raise QuorumError(f"{layout.PARAMS}: repro-full takes all training examples: set train_fraction: null")
    _lay(layout.full_copy(), {"scale": "full"})
    cache = f"[cache]\n    dir = {layout.home() / '.dvc' / 'cache'}\n"
    write_text(layout.full_copy() / ".dvc" / "config.local", cache)


def lay_try() -> None:
    """The copy to try the pipeline in; all that it makes stays in it."""
    _lay(layout.try_copy(), TRY)


def _lay(copy: Path, knobs: Mapping[str, str]) -> None:
    """Make a copy, or bring it to what the workspace is now; what it has made stays."""
    read_params()
    unknown = _git("ls-files", "--others", "--exclude-standard", "--", "pipeline").split("\n")[0]
    if unknown:
        raise QuorumError(f"{unknown}: git does not know it, so the copy would lack it; `git add` it")
    lock = copy / "dvc.lock"
    made = lock.read_bytes() if lock.is_file() else None
    if not copy.exists():
        _git("clone", "--quiet", "--shared", ".", str(copy))
    if not (copy / ".git").is_dir():
        raise QuorumError(f"{copy}: is no copy of the workspace; delete it and run the same command again")
    _git("update-index", "-q", "--refresh")  # a file that was only touched would make the stash fail
    now = _git("stash", "create") or _git("rev-parse", "HEAD")
    _git("-C", str(copy), "checkout", "--quiet", "--force", "--detach", now)
    # What the original has made is nothing that the copy could use, and DVC writes it all again after every stage.
    if made is None:
        lock.unlink(missing_ok=True)
    else:
        write_bytes(lock, made)
    params = layout.PARAMS.read_text(encoding="utf-8")
    for knob, value in knobs.items():
        params, found = re.subn(rf"^{knob}:[^#\n]*", f"{knob}: {value}  ", params, count=1, flags=re.MULTILINE)
        if not found:
            raise QuorumError(f"{layout.PARAMS}: has no line `{knob}:`; restore it from git")
    write_text(copy / layout.PARAMS, params)


def take_over() -> None:
    """The copy's small outputs -> reports/full, all at once, so that nothing half is taken for the result.

    Raises:
        QuorumError: the copy's corpus is the sample, or an output is missing.
    """
    copy = layout.full_copy()
    if read_json(copy / layout.source_record("qmsum"), remedy="run `make repro-full`")["source"] == "sample":
        raise QuorumError(
            f"{copy}: its QMSum is the made-up sample; lay a mirror (QUORUM_MIRROR) or go online, then run "
            "`make repro-full` again"
        )
    order = read_order(copy / layout.order("main"), MainOrder)
    scores = [layout.scores(row.id) for row in order.runs]
    new, old = layout.FULL.with_name("full.new"), layout.FULL.with_name("full.old")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    shutil.copy2(copy / layout.PARAMS, new)
    for path in (*TAKEN, *scores):
        _copy(copy / path, new / path.relative_to(layout.REPORTS))
    shutil.rmtree(old, ignore_errors=True)
    if layout.FULL.exists():
        layout.FULL.rename(old)
    new.rename(layout.FULL)
    shutil.rmtree(old, ignore_errors=True)
    say(f"repro-full: see {layout.FULL}")


def _copy(path: Path, target: Path) -> None:
    if not path.exists():
        raise QuorumError(f"{path}: is missing; run `make repro-full` again")
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        shutil.copy2(path, target)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join(done.stderr.split())[-200:]
        raise QuorumError(f"git {arguments[0]}: {reason}; mend it and run the same command again")
    return done.stdout.strip()
