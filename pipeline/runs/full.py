"""The main table on all of QMSum, in a copy of the workspace: the copy laid out, and its small outputs taken over.

The copy has this commit and what git tracks of the changes since; cache, work/ and MLflow are those of the original,
which DVC_ROOT names. `dvc exp run --temp` would be a fresh copy each time, and fails where dvc.lock names what no cache
holds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.plan.orders import MainOrder, read_order
from pipeline.plan.schema import read_params
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_text
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


def lay_copy() -> None:
    """Make the copy, or bring it to what the workspace is now; what it has trained stays.

    Raises:
        QuorumError: params.yaml takes a part of the training examples or has no scale, a module is unknown to git, or
            git fails.
    """
    copy = layout.full_copy()
    if read_params().train_fraction is not None:
        raise QuorumError(f"{layout.PARAMS}: repro-full takes all training examples: set train_fraction: null")
    unknown = _git("ls-files", "--others", "--exclude-standard", "--", "pipeline").split("\n")[0]
    if unknown:
        raise QuorumError(f"{unknown}: git does not know it, so the copy would lack it; `git add` it")
    if not copy.exists():
        _git("clone", "--quiet", "--shared", ".", str(copy))
    if not (copy / ".git").is_dir():
        raise QuorumError(f"{copy}: is no copy of the workspace; delete it and run `make repro-full` again")
    write_text(copy / ".dvc" / "config.local", f"[cache]\n    dir = {layout.home() / '.dvc' / 'cache'}\n")
    now = _git("stash", "create") or _git("rev-parse", "HEAD")
    _git("-C", str(copy), "checkout", "--quiet", "--force", "--detach", now)
    params = layout.PARAMS.read_text(encoding="utf-8")
    of_full, found = re.subn(r"^scale:[^#\n]*", "scale: full  ", params, count=1, flags=re.MULTILINE)
    if not found:
        raise QuorumError(f"{layout.PARAMS}: has no line `scale:`; add `scale: laptop`")
    write_text(copy / layout.PARAMS, of_full)


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
    _copy(copy / layout.FULL / "README.md", new / "README.md")
    for path in (*TAKEN, *scores):
        _copy(copy / path, new / path.relative_to(layout.REPORTS))
    shutil.rmtree(old, ignore_errors=True)
    if layout.FULL.exists():
        layout.FULL.rename(old)
    new.rename(layout.FULL)
    shutil.rmtree(old, ignore_errors=True)
    say(f"repro-full: see {layout.FULL}; `dvc repro report` puts the page's claims to it")


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
        raise QuorumError(f"git {arguments[0]}: {reason}; mend it and run `make repro-full` again")
    return done.stdout.strip()
