"""Every kind of bad input, at the command line: one line that says what, where and what to do; exit status 1."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from conftest import Workspace

from pipeline import __main__ as command_line
from pipeline.federated.blobs import FILE
from pipeline.runs import tracking
from pipeline.runs.index import planned_key
from pipeline.stages.train import unlogged


def replaced(path: Path, content: bytes) -> None:
    """Outputs are links into DVC's cache: a new file takes the link's place."""
    path.unlink()
    path.write_bytes(content)


def cut(path: Path) -> None:
    replaced(path, path.read_bytes()[:100])


def flipped(path: Path) -> None:
    """One bit of the last weight."""
    content = path.read_bytes()
    replaced(path, content[:-1] + bytes([content[-1] ^ 1]))


def unknown_parameter(folder: Path) -> None:
    with (folder / "params.yaml").open("a", encoding="utf-8") as stream:
        stream.write("tua: 4\n")


def damaged_store(folder: Path) -> None:
    """And no model, so that training needs the store."""
    for path in folder.glob("work/store/*/*.safetensors"):
        cut(path)
    shutil.rmtree(folder / "models/fedavg")


def damaged_checkpoint(folder: Path) -> None:
    """A half-written one of fedavg, whose models are gone; the tests are inside the folder."""
    path = folder / "work/checkpoints" / str(planned_key("fedavg/1")) / FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"SQLite format 3")
    shutil.rmtree(folder / "models/fedavg")


EMPTY = b'{"meeting_transcripts": [], "specific_query_list": []}'
CASES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "an unknown parameter": ("plan", unknown_parameter, ": tua: unknown key"),
    "a missing plan": (
        "encode domains",
        lambda folder: (folder / "data/plan/encode/domains.json").unlink(),
        "data/plan/encode/domains.json: is missing; run `dvc repro plan`",
    ),
    "a plan of another form": (
        "encode news",
        lambda folder: replaced(folder / "data/plan/encode/news.json", b'{"code": {}}'),
        "data/plan/encode/news.json: not a EncodeOrder (",
    ),
    "malformed JSON": (
        "prepare qmsum",
        lambda folder: replaced(folder / "data/raw/qmsum/Product/train/Spr001.json", b'{"a": \n'),
        "data/raw/qmsum/Product/train/Spr001.json: line 2: malformed JSON (",
    ),
    "an empty transcript": (
        "prepare qmsum",
        lambda folder: replaced(folder / "data/raw/qmsum/Product/train/Spr001.json", EMPTY),
        "data/raw/qmsum/Product/train/Spr001.json: not a QMSum meeting: meeting_transcripts: List should have",
    ),
    "a line that is no example": (
        "partition domains",
        lambda folder: replaced(folder / "data/prepared/qmsum/examples.jsonl", b'{"id": 1}\n'),
        "data/prepared/qmsum/examples.jsonl: line 1: no Conversation",
    ),
    "a damaged backbone": (
        "encode domains",
        lambda folder: replaced(folder / "models/backbones/tiny-llama/model.safetensors", b"x"),
        "models/backbones/tiny-llama: damaged backbone (",
    ),
    "a damaged store": ("train fedavg", damaged_store, "run `dvc repro --force --single-item encode`"),
    "a damaged checkpoint": ("train fedavg", damaged_checkpoint, "damaged checkpoint ("),
    "a damaged adapter": (
        "predict fedavg",
        lambda folder: cut(folder / "models/fedavg/1/adapters/Academic.safetensors"),
        "models/fedavg/1/adapters/Academic.safetensors: damaged adapter",
    ),
    "a changed adapter": (
        "predict news-fedavg",
        lambda folder: flipped(folder / "models/news-fedavg/1/adapters/server.safetensors"),
        "models/news-fedavg/1/adapters/server.safetensors: damaged adapter (its sha256 is not the one in "
        "models/news-fedavg/1/sha256.json); run `dvc repro train@news-fedavg`",
    ),
    "a run that is not planned": ("predict nope", lambda _: None, "data/plan/predict/nope.json: is missing"),
    "missing predictions": (
        "evaluate fedavg",
        lambda folder: (folder / "reports/predictions/fedavg/1.jsonl").unlink(),
        "reports/predictions/fedavg/1.jsonl: is missing; run `dvc repro",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_exit_status_one(
    copy: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    command, break_it, message = CASES[case]
    monkeypatch.setattr(tracking, "live", lambda run: nullcontext(unlogged))
    monkeypatch.setattr(sys, "argv", ["pipeline", *command.split()])
    with copy.entered():
        break_it(copy.folder)
        with pytest.raises(SystemExit) as ended:
            command_line.cli()
    assert ended.value.code == 1
    printed = capsys.readouterr().err
    errors = [line for line in printed.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, printed
    assert message in errors[0]
    assert "Traceback" not in printed
    assert not list(copy.folder.rglob("*.tmp"))


def test_another_process_ends_with_the_same_line_and_debug_shows_the_traceback(built: Workspace) -> None:
    command = (sys.executable, "-m", "pipeline", "predict", "nope")
    done = built.run(*command, ok=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: data/plan/predict/nope.json: is missing; run `dvc repro plan`\n"
    assert "Traceback" in built.run(*command, ok=False, PIPELINE_DEBUG="1").stderr
