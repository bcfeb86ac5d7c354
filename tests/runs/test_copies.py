"""A copy of the workspace, laid out for `make smoke`."""

import shutil

import pytest
from workspaces import IDENTITY, SMALL, Workspace, replace

from pipeline.errors import QuorumError
from pipeline.plan.checks import read_params
from pipeline.runs import copies
from pipeline.workspace import layout
from pipeline.workspace.files import write_text


@pytest.fixture
def here(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """In a test's workspace, as the command runs."""
    monkeypatch.chdir(workspace.folder)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    for name in IDENTITY:
        monkeypatch.setenv(name, "t@t")
    workspace.params(**SMALL)
    return workspace


def test_a_copy_is_of_the_sample_and_random_weights_with_changes_that_are_not_committed(here: Workspace) -> None:
    """The workspace's source and backbone do not matter; its rounds, runs and comments do."""
    here.params(data_source="auto", backbones=["smollm2-135m"], backbone="smollm2-135m", max_tokens=128, rounds=7)
    replace(here.folder / "params.yaml", "rounds: 7", "rounds: 7  # a week")
    copies.lay_smoke()
    params = read_params(layout.smoke_copy() / "params.yaml")
    assert (params.data_source, params.backbones, params.max_tokens) == ("sample", ["tiny-llama"], 24)
    assert (params.scale, params.rounds, set(params.runs)) == ("small", 7, set(SMALL["runs"]))
    assert "# a week" in (layout.smoke_copy() / "params.yaml").read_text(encoding="utf-8")
    assert read_params(here.folder / "params.yaml").backbone == "smollm2-135m", "the workspace's own file stays"


def test_a_copy_has_ones_own_texts_though_git_ignores_them(here: Workspace) -> None:
    for name in ("may", "june"):
        write_text(here.folder / layout.OWN / "Clinic" / f"{name}.txt", "Ann: Hello.\n")
    copies.lay_smoke()
    (here.folder / layout.OWN / "Clinic" / "june.txt").unlink()
    copies.lay_smoke()
    assert [path.name for path in (layout.smoke_copy() / layout.OWN / "Clinic").iterdir()] == ["may.txt"]


def test_a_copy_begins_without_dvc_lock_and_keeps_its_own(here: Workspace) -> None:
    """The original's dvc.lock is of other knobs; the copy's own says where it stopped."""
    (here.folder / "dvc.lock").write_text("schema: '2.0'\nstages: {}\n")
    here.commit()
    copies.lay_smoke()
    lock = layout.smoke_copy() / "dvc.lock"
    assert not lock.exists()
    own = "schema: '2.0'\nstages: {}  # the copy's own\n"
    lock.write_text(own)
    (here.folder / "README.md").write_text("changed")
    copies.lay_smoke()
    assert (lock.read_text(), (layout.smoke_copy() / "README.md").read_text()) == (own, "changed")


def test_what_a_copy_would_lack_is_found_before_it_and_a_folder_that_is_none_is_refused(here: Workspace) -> None:
    """A module that git does not know, and a wrong params.yaml."""
    mine = here.folder / "pipeline" / "federated" / "mine.py"
    mine.write_text("")
    with pytest.raises(QuorumError, match=r"pipeline/federated/mine.py: git does not know it"):
        copies.lay_smoke()
    mine.unlink()
    here.params(tau=-1)
    with pytest.raises(QuorumError, match="tau: is a number of nats"):
        copies.lay_smoke()
    here.params(tau=1.0)
    shutil.rmtree(layout.smoke_copy() / ".git", ignore_errors=True)
    layout.smoke_copy().mkdir(parents=True, exist_ok=True)
    with pytest.raises(QuorumError, match="is not a copy of the workspace; delete it"):
        copies.lay_smoke()
