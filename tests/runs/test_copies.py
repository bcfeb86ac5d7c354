"""A copy of the workspace, laid out for `make try`."""

from __future__ import annotations

import pytest
from workspaces import SMALL, Workspace

from pipeline.errors import QuorumError
from pipeline.plan.schema import read_params
from pipeline.runs import copies
from pipeline.workspace import layout

COMMITTER = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
WHOLE = SMALL | {"train_fraction": None}


@pytest.fixture
def here(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """In a test's workspace, as the command runs."""
    monkeypatch.chdir(workspace.folder)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    for name, value in COMMITTER.items():
        monkeypatch.setenv(name, value)
    workspace.params(**WHOLE)
    return workspace


def test_a_copy_has_the_changes_that_are_not_committed(here: Workspace) -> None:
    here.params(rounds=7)
    copies.lay_try()
    assert read_params(layout.try_copy() / "params.yaml").rounds == 7
    (here.folder / "README.md").write_text("changed")
    text = (here.folder / "params.yaml").read_text(encoding="utf-8")
    mine = text.replace("data_source: sample", 'data_source: "sample"  # mine')
    (here.folder / "params.yaml").write_text(mine, encoding="utf-8")
    copies.lay_try()
    assert read_params(layout.try_copy() / "params.yaml").data_source == "sample"
    assert (layout.try_copy() / "README.md").read_text() == "changed"


def test_a_copy_to_try_is_of_the_sample_and_random_weights(here: Workspace) -> None:
    """The workspace's source and backbone do not matter; its rounds and runs do."""
    here.params(data_source="auto", backbone="smollm2-135m", max_tokens=128, rounds=7)
    copies.lay_try()
    params = read_params(layout.try_copy() / "params.yaml")
    assert (params.data_source, params.backbone, params.max_tokens) == ("sample", "tiny-llama", 24)
    assert (params.scale, params.rounds, set(params.runs)) == ("laptop", 7, set(SMALL["runs"]))
    assert read_params(here.folder / "params.yaml").backbone == "smollm2-135m", "the workspace's own file stays"


def test_a_copy_begins_without_dvc_lock_and_keeps_its_own(here: Workspace) -> None:
    """The original's dvc.lock is of other knobs; the copy's own says where it stopped."""
    (here.folder / "dvc.lock").write_text("schema: '2.0'\nstages: {}\n")
    here.commit()
    copies.lay_try()
    lock = layout.try_copy() / "dvc.lock"
    assert not lock.exists()
    own = "schema: '2.0'\nstages: {}  # the copy's own\n"
    lock.write_text(own)
    copies.lay_try()
    assert lock.read_text() == own


def test_a_wrong_params_file_is_found_before_the_copy(here: Workspace) -> None:
    here.params(tau=-1)
    with pytest.raises(QuorumError, match="tau: is a number of nats"):
        copies.lay_try()


def test_a_params_file_without_the_line_is_refused(here: Workspace) -> None:
    """As `{backbone: tiny-llama, ...}` in one line has none."""
    text = (here.folder / "params.yaml").read_text(encoding="utf-8")
    (here.folder / "params.yaml").write_text(text.replace("backbone: tiny", '"backbone": tiny'), encoding="utf-8")
    with pytest.raises(QuorumError, match="has no line `backbone:`; restore it from git"):
        copies.lay_try()


def test_a_folder_that_is_no_copy_is_refused(here: Workspace) -> None:
    layout.try_copy().mkdir(parents=True, exist_ok=True)
    git, away = layout.try_copy() / ".git", layout.try_copy() / ".away"
    if git.exists():
        git.rename(away)
    with pytest.raises(QuorumError, match="is not a copy of the workspace; delete it"):
        copies.lay_try()
    if away.exists():
        away.rename(git)
    else:
        layout.try_copy().rmdir()


def test_a_module_that_git_does_not_know_is_named(here: Workspace) -> None:
    mine = here.folder / "pipeline" / "federated" / "mine.py"
    mine.write_text("")
    try:
        with pytest.raises(QuorumError, match=r"pipeline/federated/mine.py: git does not know it"):
            copies.lay_try()
    finally:
        mine.unlink()
