"""A copy of the workspace in which to try the pipeline.

The copy has this commit and the later changes of tracked files. `dvc exp run --temp` would start from a fresh copy each
time, and fails if dvc.lock names files that no cache has.
"""

import subprocess

from ruamel.yaml import YAML

from pipeline.errors import QuorumError
from pipeline.plan.checks import read_params
from pipeline.workspace import layout
from pipeline.workspace.files import copy_tree, empty_folder, replacing, write_bytes
from pipeline.workspace.mend import mend

SMOKE = {"data_source": "sample", "backbones": ["tiny-llama"], "backbone": "tiny-llama", "max_tokens": 24}
"""The sample's few short meetings and random weights: every file and page of the main table, without meaning."""


def lay_smoke() -> None:
    """Create the copy work/smoke, or update it to the workspace's present state; its outputs stay.

    Raises QuorumError if params.yaml is wrong, git does not know a module, or the folder is no copy.
    """
    copy = layout.smoke_copy()
    read_params()
    if unknown := _git("ls-files", "--others", "--exclude-standard", "--", "pipeline").split("\n")[0]:
        raise QuorumError(f"{unknown}: git does not know it, so the copy would lack it; `git add` it")
    lock = copy / "dvc.lock"
    if copy.exists():
        mend(copy)
    own_lock = lock.read_bytes() if lock.is_file() else None
    if not copy.exists():
        _git("clone", "--quiet", "--shared", ".", str(copy))
    if not (copy / ".git").is_dir():
        raise QuorumError(f"{copy}: is not a copy of the workspace; delete it and run the same command again")
    _git("update-index", "-q", "--refresh")  # a file that was only touched would make the stash fail
    now = _git("stash", "create") or _git("rev-parse", "HEAD")
    _git("-C", str(copy), "checkout", "--quiet", "--force", "--detach", now)
    empty_folder(copy / layout.OWN)  # git ignores one's own texts
    copy_tree(layout.OWN, copy / layout.OWN)
    # The original's dvc.lock is of no use in the copy, and DVC would rewrite all of it after every stage.
    lock.unlink(missing_ok=True)
    if own_lock is not None:
        write_bytes(lock, own_lock)
    yaml = YAML()  # comments stay
    yaml.preserve_quotes = True
    params = yaml.load(layout.PARAMS.read_text(encoding="utf-8"))
    params.update(SMOKE)
    with replacing(copy / layout.PARAMS) as written:
        yaml.dump(params, written)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join(done.stderr.split())[-200:] or "failed; is the folder writable?"
        raise QuorumError(f"git {arguments[0]}: {reason}; mend it and run the same command again")
    return done.stdout.strip()
