"""Every kind of bad input, at the command line: one line that says what, where and what to do; exit status 1."""

import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from conftest import Workspace

from pipeline import __main__ as command_line
from pipeline.runs import tracking
from pipeline.stages.train import unlogged

Break = Callable[[Path], None]


def put(name: str, content: bytes | None) -> Break:
    """Another content of a file, or no file. Outputs are links into DVC's cache: a new file takes the link's place."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)

    return change


def damaged(name: str, *, cut: bool) -> Break:
    """A file that ends after 100 bytes, or with one bit flipped in its last one."""

    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        put(name, content[:100] if cut else content[:-1] + bytes([content[-1] ^ 1]))(folder)

    return change


def unknown_parameter(folder: Path) -> None:
    with (folder / "params.yaml").open("a", encoding="utf-8") as stream:
        stream.write("tua: 4\n")


def damaged_store(folder: Path) -> None:
    """And no model, so that training needs the store."""
    for path in folder.glob("work/store/*/*.safetensors"):
        damaged(str(path.relative_to(folder)), cut=True)(folder)
    shutil.rmtree(folder / "models/fedavg")


PLAN, MEETING = "data/plan/encode/domains.json", "data/raw/qmsum/Product/train/Spr001.json"
EMPTY = b'{"meeting_transcripts": [], "specific_query_list": []}'
EXAMPLES, PREDICTIONS = "data/prepared/qmsum/examples.jsonl", "reports/predictions/fedavg/1.jsonl"
ADAPTER, CHANGED = "models/fedavg/1/adapters/Academic.safetensors", "models/news-fedavg/1/adapters/server.safetensors"
OTHER_HASH = (
    "damaged adapter (its sha256 is not the one in models/news-fedavg/1/sha256.json); run `dvc repro train@news-"
)
WEIGHTS = "models/backbones/tiny-llama"
CASES: dict[str, tuple[str, Break, str]] = {
    "an unknown parameter": ("plan", unknown_parameter, ": tua: unknown key"),
    "a missing plan": ("encode domains", put(PLAN, None), f"{PLAN}: is missing; run `dvc repro plan`"),
    "a plan of another form": ("encode domains", put(PLAN, b'{"code": {}}'), f"{PLAN}: not a EncodeOrder ("),
    "malformed JSON": ("prepare qmsum", put(MEETING, b'{"a": \n'), f"{MEETING}: line 2: malformed JSON ("),
    "an empty transcript": (
        "prepare qmsum",
        put(MEETING, EMPTY),
        f"{MEETING}: not a QMSum meeting: meeting_transcripts: List should have",
    ),
    "no example": ("partition domains", put(EXAMPLES, b'{"id": 1}\n'), f"{EXAMPLES}: line 1: no Conversation"),
    "a backbone": ("encode domains", put(f"{WEIGHTS}/model.safetensors", b"x"), f"{WEIGHTS}: damaged backbone ("),
    "a damaged store": ("train fedavg", damaged_store, "run `dvc repro --force --single-item encode`"),
    "a damaged adapter": ("predict fedavg", damaged(ADAPTER, cut=True), f"{ADAPTER}: damaged adapter"),
    "a changed adapter": ("predict news-fedavg", damaged(CHANGED, cut=False), f"{CHANGED}: {OTHER_HASH}fedavg`"),
    "a run that is not planned": ("predict nope", lambda _: None, "data/plan/predict/nope.json: is missing"),
    "missing predictions": ("evaluate fedavg", put(PREDICTIONS, None), f"{PREDICTIONS}: is missing; run `dvc repro"),
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
