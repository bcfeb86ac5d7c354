"""Summarizes a new meeting with a client's trained adapter."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.clients.skews import SERVER
from pipeline.corpora.conversation import Conversation, Turn
from pipeline.corpora.transcripts import read_transcript
from pipeline.errors import QuorumError
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.precision import Precision, multiplies_bf16, resolve
from pipeline.plan.learner import Learner, Reader
from pipeline.plan.orders import PredictOrder, RunRow, planned_runs, read_order
from pipeline.runs.index import read_manifest
from pipeline.runs.jobs import model_file
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import say

if TYPE_CHECKING:  # these imports take seconds, and a wrong argument should fail at once
    from pipeline.model.backbone import Backbone, Rendered
    from pipeline.model.encoder import Encoder
    from pipeline.runs.encoding import Reading
    from pipeline.tasks.task import WriterTask


def summarize_file(file: Path, *, run: str, client: str, query: str, turns: str | None) -> str:
    """Return the summary; reports on standard error which turns of the transcript were left out.

    Raises QuorumError if the file, the run, the client, the query or the range of turns is wrong.
    """
    if not query.strip():
        raise QuorumError("--query: is empty; say what to summarize")
    row = row_of(run)
    adapter_path = model_of_client(row, client)
    meeting = read_transcript(file)
    places = list(range(*turn_range(turns, len(meeting))))
    reading, rule = _reading(row)

    def rendered(chosen: list[Turn]) -> Rendered:
        return reading.windows(Conversation(file.stem, "new", "new", "test", file.stem, query, tuple(chosen), ""))[0]

    def fits(chosen: list[Turn]) -> bool:
        window = rendered(chosen)
        return window.transcript_read == window.transcript_tokens

    limit = f"to fit {reading.view.source_tokens} tokens"
    if turns is None and not fits(meeting):
        places = nearest_turns(meeting, query, fits, resolve("auto", "cpu"))
        if left_out := len(meeting) - len(places):
            say(
                f"{file.stem}: {left_out} of {len(meeting)} turns left out, {limit}: those least like the query; "
                "--turns A-B chooses others"
            )
    chosen = [meeting[place] for place in places]
    say(f"{file.stem}: turns used: {spans([place + 1 for place in places])}")
    if not fits(chosen):
        say(f"{file.stem}: the end of the last turns was cut off, {limit}")
    return _written(reading, rule, rendered(chosen), adapter_path)


def model_of_client(row: RunRow, client: str) -> Path:
    """The file of the model that a client has. Raises QuorumError if the run has no such client, or no model of it."""
    clients = [name for name, own in read_manifest(row.setting, row.seed).items() if own["train"]]
    if client not in clients:
        raise QuorumError(f"--client {client}: run {row.id} has no such client; it has {', '.join(clients)}")
    own = layout.adapter(row.id, SERVER, client)  # where it is tested on the server's examples
    return own if own.is_file() else model_file(row.id, client)


def row_of(run: str) -> RunRow:
    """A planned run, at its first seed unless that is named. Raises QuorumError if it is not planned."""
    rows = [row for row in planned_runs() if not row.left_out]
    for row in rows:
        if run in (row.id, row.name, f"{row.name}-{row.seed}"):
            return row
    raise QuorumError(f"--run {run}: no such run; there are {', '.join(dict.fromkeys(row.name for row in rows))}")


def _reading(row: RunRow) -> tuple[Reading, DecodingRule]:
    """Load a run's backbone. Raises QuorumError if the run writes no summaries, or its backbone is missing."""
    rule = read_order(layout.order("predict", row.name), PredictOrder).rule
    if rule is None or row.learner is None:
        raise QuorumError(f"--run {row.name}: writes no summaries; choose another run")
    return reading_of(row.learner), rule


def reading_of(learner: Learner) -> Reading:
    """Load a learner's frozen model, in fp32 where this machine has no bf16."""
    from pipeline.runs.encoding import Reading

    reader, view, task = learner.reader, learner.view, load_task(learner.task)
    if reader.precision == "bf16" and not multiplies_bf16(reader.device):
        say("summarize: in fp32, as this machine does not multiply bf16 natively; the run was trained in bf16")
        reader = reader.model_copy(update={"precision": "fp32"})
    if view.backbone.startswith("tiny"):
        say("summarize: the model is a tiny one with random weights: its summaries are noise")
    digest = read_json(layout.backbone(view.backbone) / layout.ABOUT_BACKBONE)["digest"]
    backbone = _backbone(layout.home(), digest, reader.model_dump_json())
    return Reading(backbone, task, view, task.classes(()), digest, "")


@lru_cache(maxsize=1)
def _backbone(_home: Path, _digest: str, reader: str) -> Backbone | Encoder:
    """Load the backbone once for all summaries of a process."""
    from pipeline.runs.learners import model_of

    return model_of(Reader.model_validate_json(reader))


def _written(reading: Reading, rule: DecodingRule, window: Rendered, adapter_path: Path) -> str:
    """Write a summary with a client's adapter."""
    import torch

    from pipeline.model.adapter import on_device, read_adapter
    from pipeline.model.backbone import Backbone, Row

    assert isinstance(reading.model, Backbone)
    prefix, extra = reading.model.encode(window, for_generation=True)
    adapter = on_device(read_adapter(adapter_path), reading.model.device)
    task: WriterTask = reading.task  # type: ignore[assignment]  # a rule is of one
    with torch.no_grad():
        return task.predict(reading.model, [prefix | extra], [Row(0, adapter)], rule)[0].text


def turn_range(text: str | None, count: int) -> tuple[int, int]:
    """Convert `A-B`, counted from 1 and inclusive, to the ends of a Python range.

    Raises QuorumError if it is not of that form, or outside the transcript.
    """
    if text is None:
        return 0, count
    match = re.fullmatch(r"(\d+)-(\d+)", text.strip())
    if not match or not 1 <= int(match[1]) <= int(match[2]) <= count:
        raise QuorumError(f"--turns {text}: give A-B with 1 <= A <= B <= {count}, the number of turns")
    return int(match[1]) - 1, int(match[2])


def nearest_turns(
    meeting: list[Turn], query: str, fits: Callable[[list[Turn]], bool], precision: Precision = "fp32"
) -> list[int]:
    """Find the places, in order, of the turns nearest to the query by sentence embedding: as many as fit, or one."""
    from pipeline.tasks.similarity import embed

    vectors = embed([query, *(f"{turn.speaker}: {turn.text}" for turn in meeting)], precision)
    order = (vectors[1:] @ vectors[0]).argsort(descending=True).tolist()

    def is_too_long(count: int) -> bool:
        return not fits([meeting[i] for i in sorted(order[:count])])

    return sorted(order[: 1 + bisect_left(range(2, len(meeting) + 1), True, key=is_too_long)])


def spans(numbers: list[int]) -> str:
    """Format ascending numbers as ranges.

    >>> spans([1, 2, 3, 7, 9, 10])
    '1-3, 7, 9-10'
    """
    groups = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
