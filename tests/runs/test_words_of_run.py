"""Which words of its training summaries a run distilled: from masks on disk to tables."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import make_example
from made_results import TRAINING, round_of, row_of, run_of

from pipeline.federated.history import Round
from pipeline.federated.masks import pack_masks
from pipeline.model.adapter import pack
from pipeline.runs import analysis
from pipeline.runs.analysis import words_of_run
from pipeline.workspace import layout
from pipeline.workspace.files import write_bytes, write_json
from pipeline.workspace.tables import write_table

PIECES = ["project", " manager", " decides", " to", " use", " lcd"]
"""The paper's example: six words, here a token each."""
NOTHING = [False] * 6
FIRST, SECOND = [False, True, True, False, False, False], [False, False, True, False, False, False]
EXAMPLES = {f"e{number}": make_example(number) for number in range(2)}
"""Two of two meetings."""


@pytest.fixture(autouse=True)
def read(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a store in which every summary is the example."""
    store = SimpleNamespace(training=lambda keys: [{"targets": torch.arange(len(PIECES))} for _ in keys])
    monkeypatch.setattr(analysis.AutoTokenizer, "from_pretrained", lambda _folder: None)
    monkeypatch.setattr(analysis, "pieces_of", lambda _tokenizer, ids: [PIECES[i] for i in ids])
    monkeypatch.setattr(analysis, "PrefixStore", lambda _folder: store)


def lay(run: str, history: Sequence[Round], masks: dict[int, list[list[bool]]]) -> None:
    """A run of one client with its training examples, one a meeting, and its masks by round."""
    index = {"digest": "d", "encoding": "e", "classes": [], "entries": {i: [["k", 6, 9]] for i in EXAMPLES}, "read": {}}
    write_json(layout.encoded("domains", "ours"), index)
    manifest = {"A": {"train": list(EXAMPLES)[: len(next(iter(masks.values()))[0]) // 6], "val": [], "test": []}}
    write_json(layout.partition("domains", int(run[-1])), {"manifest": manifest})
    write_table(layout.history(run), [one.to_row() for one in history])
    found = {f"A/distilled/{number}": torch.tensor(rows) for number, rows in masks.items()}
    write_bytes(layout.masks(run), pack(pack_masks(found)))


def rounds(*numbers: int, best: int, idle: Sequence[int] = ()) -> list[Round]:
    return [round_of(n, "A", 2.0, steps=0 if n in idle else 3, best=n == best) for n in numbers]


@pytest.mark.parametrize(
    ("history", "masks", "epochs", "found"),
    [
        (rounds(1, 2, best=2), {1: [FIRST], 2: [SECOND]}, 1, (12, 3, 0.25)),
        (rounds(1, 2, 3, best=2), {1: [FIRST], 2: [SECOND], 3: [[True] * 6]}, 1, (12, 3, 0.25)),
        (rounds(1, 2, best=2), {2: [SECOND]}, 1, (12, 1, 0.0833)),
        (rounds(1, 2, 3, best=3, idle=[2]), {1: [FIRST], 3: [SECOND]}, 1, (12, 3, 0.25)),
        (rounds(1, best=1), {1: [FIRST, NOTHING]}, 2, (12, 2, 0.1667)),
    ],
    ids=["the paper's example", "after the best round", "without a mask", "idle", "two passes over the data"],
)
def test_words_count_in_every_pass_of_the_rounds_up_to_the_best(
    history: list[Round], masks: dict[int, list[list[bool]]], epochs: int, found: tuple[int, int, float]
) -> None:
    """`manager` once and `decides` twice in two rounds: 3/(2·6). Without a mask nothing was distilled: 1/(2·6)."""
    lay("ours/1", history, masks)
    row = row_of("ours", training=TRAINING.model_copy(update={"local_epochs": epochs}))
    everything = words_of_run([row], EXAMPLES, 50).parts[-1]
    assert (everything["words"], everything["distilled"], everything["distilled_given_pos"]) == found


def test_seeds_are_added_up_and_meetings_kept_apart() -> None:
    """Two examples of two meetings, at two seeds: one meeting's two words are distilled at the first seed alone."""
    history = rounds(1, best=1)
    lay("ours/1", history, {1: [FIRST + NOTHING]})
    lay("ours/2", history, {1: [NOTHING + NOTHING]})
    found = words_of_run([*run_of("ours", 1), *run_of("ours", 2)], EXAMPLES, 200)
    assert (found.parts[-1]["words"], found.parts[-1]["distilled"]) == (24, 2)
    shares = {row["share"]: row for row in found.shares}
    named = [shares[name] for name in ("distilled", "all_subwords", "fraction")]
    assert {(row["run"], row["client"]) for row in named} == {("ours", "A")}
    assert [row["value"] for row in named] == pytest.approx([2 / 24] * 3, abs=1e-4)
    assert shares["distilled"]["low"] is shares["distilled"]["high"] is None, "two meetings are too few"
    assert words_of_run([], EXAMPLES, 50).parts == []
