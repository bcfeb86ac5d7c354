"""Summarizes a new meeting with a client's trained adapter."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.corpora.conversation import Conversation, Turn
from pipeline.corpora.transcripts import read_transcript
from pipeline.errors import QuorumError
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.precision import Precision, multiplies_bf16, resolve
from pipeline.plan.orders import EncodeOrder, GenerateOrder, planned_runs, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import say

if TYPE_CHECKING:  # these imports take seconds, and a wrong argument should fail at once
    from pipeline.model.backbone import Backbone, Limits, Rendered
    from pipeline.tasks.task import WriterTask


def summarize_file(file: Path, *, run: str, client: str, query: str, turns: str | None) -> str:
    """Return the summary; reports on standard error which turns of the transcript were left out.

    Raises:
        QuorumError: the file, the run, the client, the query or the range of turns is wrong.
    """
    if not query.strip():
        raise QuorumError("--query: is empty; say what to summarize")
    run_id = _run_id(run)
    clients = read_json(layout.encoded_index(run_id))["clients"]
    if client not in clients:
        raise QuorumError(f"--client {client}: run {run_id} has no such client; it has {', '.join(clients)}")
    adapter_path = layout.adapter(run_id, client)
    meeting = read_transcript(file)
    first, last = turn_range(turns, len(meeting))
    return _summarize(file.stem, meeting[first:last], run_id, adapter_path, query, first + 1, chosen=turns is not None)


@dataclass(frozen=True)
class _LoadedRun:
    """A run's loaded backbone, and how it encodes and decodes."""

    backbone: Backbone
    task: WriterTask
    rule: DecodingRule
    limits: Limits

    def rendered(self, name: str, turns: list[Turn], query: str) -> Rendered:
        """Turn a meeting and a query into tokens."""
        example = Conversation(name, "new", "new", "test", name, query, tuple(turns), "")
        return self.task.render(self.backbone, example, (), self.limits)[0]


def _load_run(run_id: str) -> _LoadedRun:
    """Load a run's backbone.

    Raises:
        QuorumError: the run writes no summaries, or its backbone is missing.
    """
    from pipeline.model.backbone import Limits
    from pipeline.model.loading import backbone_digest
    from pipeline.tasks.task import load_task

    encode = read_order(layout.order("encode", layout.group_of(run_id)), EncodeOrder)
    rule = read_order(layout.order("generate", run_id), GenerateOrder).rule
    if rule is None:
        raise QuorumError(f"--run {run_id}: writes no summaries (decode: false); choose another run")
    limits = Limits(*encode.limits[encode.manifests[run_id]])
    precision = encode.precision
    if precision == "bf16" and not multiplies_bf16(encode.device):
        say("summarize: in fp32, as this machine does not multiply bf16 natively; the run was trained in bf16")
        precision = "fp32"
    if read_json(layout.BACKBONE / layout.ABOUT_BACKBONE)["name"].startswith("tiny"):
        say("summarize: the model is a tiny one with random weights: its summaries are noise")
    digest = backbone_digest(layout.BACKBONE)
    backbone = _backbone(layout.home(), digest, encode.adapted_layers, encode.device, precision)
    return _LoadedRun(backbone, load_task(encode.task), rule, limits)


@lru_cache(maxsize=1)
def _backbone(_home: Path, _digest: str, adapted_layers: int, device: str, precision: Precision) -> Backbone:
    """Load the backbone once for all summaries of a process."""
    from pipeline.model.loading import choose_device, load_backbone

    return load_backbone(layout.BACKBONE, adapted_layers, choose_device(device), precision)


def _summarize(
    name: str, meeting: list[Turn], run_id: str, adapter_path: Path, query: str, first: int, *, chosen: bool
) -> str:
    """Summarize the turns of a meeting; `first` is the number of the first one, counted from 1."""
    import torch

    from pipeline.model.adapter import on_device, read_adapter
    from pipeline.model.backbone import Row

    run = _load_run(run_id)

    def fits(turns: list[Turn]) -> bool:
        rendered = run.rendered(name, turns, query)
        return rendered.transcript_read == rendered.transcript_tokens

    places = list(range(len(meeting)))
    if not fits(meeting) and not chosen:
        places = nearest_turns(meeting, query, fits, resolve("auto", "cpu"))
        if len(places) < len(meeting):
            say(
                f"{name}: {len(meeting) - len(places)} of {len(meeting)} turns left out, to fit "
                f"{run.limits.source_tokens} tokens: those least like the query; --turns A-B chooses others"
            )
    chosen_turns = [meeting[place] for place in places]
    say(f"{name}: turns used: {spans([first + place for place in places])}")
    if not fits(chosen_turns):
        say(f"{name}: the end of the last turns was cut off, to fit {run.limits.source_tokens} tokens")
    prefix, extra = run.backbone.encode(run.rendered(name, chosen_turns, query), for_generation=True)
    adapter = on_device(read_adapter(adapter_path), run.backbone.device)
    with torch.no_grad():
        return run.task.predict(run.backbone, [prefix | extra], [Row(0, adapter)], run.rule)[0].text


def _run_id(run: str) -> str:
    rows = planned_runs()
    for row in rows:
        if run in (row.id, row.name, row.id.split("/")[1]):
            return row.id
    raise QuorumError(f"--run {run}: no such run; there are {', '.join(row.name for row in rows)}")


def turn_range(text: str | None, count: int) -> tuple[int, int]:
    """Convert `A-B`, counted from 1 and inclusive, to the ends of a Python range.

    Raises:
        QuorumError: not of that form, or outside the transcript.
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
    """Find the places, in order, of the turns nearest to the query by sentence embedding, as many as fit."""
    from pipeline.tasks.similarity import embed

    vectors = embed([query, *(f"{turn.speaker}: {turn.text}" for turn in meeting)], precision)
    order = (vectors[1:] @ vectors[0]).argsort(descending=True).tolist()
    low, high = 1, len(meeting)
    while low < high:
        middle = (low + high + 1) // 2
        if fits([meeting[i] for i in sorted(order[:middle])]):
            low = middle
        else:
            high = middle - 1
    return sorted(order[:low])


def spans(numbers: list[int]) -> str:
    """Format ascending numbers as ranges.

    >>> spans([1, 2, 3, 7, 9, 10])
    '1-3, 7, 9-10'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
