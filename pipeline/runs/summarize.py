"""Summarizes a new meeting with a client's trained adapter."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.clients.skews import SERVER
from pipeline.corpora.conversation import Conversation, Turn
from pipeline.corpora.organisation import turn_range
from pipeline.corpora.text import clean
from pipeline.corpora.transcripts import read_meeting
from pipeline.errors import QuorumError
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.precision import Precision, multiplies_bf16, resolve
from pipeline.plan.checks import read_params
from pipeline.plan.learner import Learner, Reader
from pipeline.plan.orders import PredictOrder, RunRow, planned_runs, read_order
from pipeline.runs.index import read_manifest
from pipeline.runs.jobs import model_file
from pipeline.runs.parts import divided, pieces
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import say

if TYPE_CHECKING:  # these imports take seconds, and a wrong argument should fail at once
    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Backbone, Rendered
    from pipeline.model.encoder import Encoder
    from pipeline.runs.encoding import Reading
    from pipeline.tasks.task import WriterTask

PARTS = ("auto", "one")
"""How a meeting is read that is longer than the model reads: in as many parts as it needs, or what fits of it."""
AT_ONCE = 8
"""Parts that are decoded at once: of 1,024 tokens they take 0.4 GB, and an organisation's machine may have 4 GiB."""


def summarize_file(
    file: Path, *, run: str, client: str, query: str | None = None, turns: str | None = None, parts: str = "auto"
) -> str:
    """Return the summary; reports on standard error what was read of the transcript.

    Raises QuorumError if the file, the run, the client, the query, the range of turns or `parts` is wrong.
    """
    if query is not None and not query.strip():
        raise QuorumError("--query: is empty; say what to summarize")
    if parts not in PARTS:
        raise QuorumError(f"--parts {parts}: choose {' or '.join(PARTS)}")
    row = row_of(run, client)
    meeting = [replace(turn, text=clean(turn.text)) for turn in read_meeting(file)[0].turns]
    first, end = turn_range(turns or "", len(meeting), "--turns")
    queries = read_params().queries_of(client)
    summarizer = summarizer_of(row, client, file.stem, queries.merge)
    chosen, query = meeting[first:end], query or queries.whole
    if parts == "auto" and not fits(summarizer.window(chosen, query)):
        return summarizer.of_parts(chosen, query, first + 1)
    return summarizer.of_what_fits(chosen, query, first + 1, nearest=turns is None)


@dataclass(frozen=True)
class Summarizer:
    """A run's model with a client's adapter, which summarizes turns of a meeting.

    `name`: of the meeting, in messages. `merge`: the query of the summaries of parts; {query} is that of the parts.
    """

    name: str
    reading: Reading
    rule: DecodingRule
    adapter: Adapter
    merge: str

    def of_what_fits(self, meeting: Sequence[Turn], query: str, first: int = 1, *, nearest: bool = True) -> str:
        """A summary of what fits: turns nearest to the query, or the first ones; prints them, from turn `first` on."""
        places, limit = list(range(len(meeting))), f"to fit {self.reading.view.source_tokens} tokens"
        if nearest and not fits(self.window(meeting, query)):
            places = nearest_turns(meeting, query, lambda own: fits(self.window(own, query)), resolve("auto", "cpu"))
            if left_out := len(meeting) - len(places):
                said = f"{left_out} of {len(meeting)} turns left out, {limit}: those least like the query"
                say(f"{self.name}: {said}; --turns A-B chooses others")
        say(f"{self.name}: turns used: {spans([first + place for place in places])}")
        window = self.window([meeting[place] for place in places], query)
        if not fits(window):
            say(f"{self.name}: the end of the last turns was cut off, {limit}")
        return self._write([window])[0]

    def of_parts(self, meeting: Sequence[Turn], query: str, first: int = 1) -> str:
        """A summary of the parts' summaries, of a meeting that does not fit; prints the parts, from turn `first` on."""
        parts, tokens = self.parts(meeting, query), self.reading.view.source_tokens
        say(f"{self.name}: {len(meeting)} turns do not fit {tokens} tokens: {len(parts)} parts; --parts one: what fits")
        texts = list[str]()
        for at in range(0, len(parts), AT_ONCE):
            batch = parts[at : at + AT_ONCE]
            texts += self._write([window for _, window in batch])
            for number, ((places, window), text) in enumerate(zip(batch, texts[at:], strict=True), at + 1):
                wrong = "" if fits(window) else ", whose end was cut off"
                wrong += "" if text else ": it gave no summary, so the result lacks it"
                say(f"{self.name}: part {number} of {len(parts)}: turns {spans([first + i for i in places])}{wrong}")
        return self._merged([text for text in texts if text], self.merge.replace("{query}", query))

    def parts(self, meeting: Sequence[Turn], query: str) -> list[tuple[list[int], Rendered]]:
        """The parts of a meeting that does not fit: the places of their turns, and what the model reads."""
        room, sizes = self.window(meeting, query).transcript_read, self._sizes(meeting, query)
        split = [pieces(turn, size, room) for turn, size in zip(meeting, sizes, strict=True)]
        places, turns = [place for place, own in enumerate(split) for _ in own], [one for own in split for one in own]
        cuts = [slice(part.start, part.stop) for part in divided(self._sizes(turns, query), room)]
        return [(sorted(set(places[cut])), self.window(turns[cut], query)) for cut in cuts]

    def _merged(self, texts: list[str], query: str) -> str:
        """One summary of several: as many as fit are merged at once, until one is left."""
        while len(texts) > 1:
            turns = [Turn(str(number), text) for number, text in enumerate(texts, 1)]
            sizes, window = self._sizes(turns, query), self.window(turns, query)
            groups = divided(sizes, sum(sizes) if fits(window) else window.transcript_read, overlap=False)
            merged = self._write([self.window(turns[group.start : group.stop], query) for group in groups])
            if len(groups) == len(texts) or not all(merged):
                say(f"{self.name}: the summaries of parts could not be merged, so they follow one another")
                break
            texts = merged
        return " ".join(texts)

    def window(self, turns: Sequence[Turn], query: str) -> Rendered:
        """What the model reads of turns: as many tokens as fit, from the first on."""
        example = Conversation(self.name, "new", "new", "test", self.name, query, tuple(turns), "")
        return self.reading.windows(example)[0]

    def _sizes(self, turns: Sequence[Turn], query: str) -> list[int]:
        """Tokens of each turn, and one that may separate it from the next."""
        return [self.window([turn], query).transcript_tokens + 1 for turn in turns]

    def _write(self, windows: Sequence[Rendered]) -> list[str]:
        """A text for each window. The limit may leave a part of a last character, which goes."""
        import torch

        from pipeline.model.backbone import Backbone, Row

        model = self.reading.model
        task: WriterTask = self.reading.task  # type: ignore[assignment]  # a rule is of one
        assert isinstance(model, Backbone)
        encoded = (model.encode(window, for_generation=True) for window in windows)
        prefixes = [prefix | extra for prefix, extra in encoded]
        rows = [Row(place, self.adapter) for place in range(len(prefixes))]
        with torch.no_grad():
            return [one.text.rstrip("\ufffd ") for one in task.predict(model, prefixes, rows, self.rule)]


def fits(window: Rendered) -> bool:
    """Whether the model reads the turns to their end."""
    return window.transcript_read == window.transcript_tokens


def row_of(run: str, client: str) -> RunRow:
    """A planned run, with or without its seed. Raises QuorumError if there is none, or it has no such client."""
    rows = [row for row in planned_runs() if not row.left_out]
    row = next((row for row in rows if run in (row.id, row.name, f"{row.name}-{row.seed}")), None)
    if row is None:
        raise QuorumError(f"--run {run}: no such run; there are {', '.join(dict.fromkeys(row.name for row in rows))}")
    if not layout.adapters(row.id).is_dir():
        raise QuorumError(f"--run {run}: is not trained yet; run `make repro`")
    clients = [name for name, own in read_manifest(row.setting, row.seed).items() if own["train"]]
    of_server = layout.adapter(row.id, SERVER).is_file()
    if client not in clients and not (client == SERVER and of_server):
        known = [*clients, SERVER] if of_server else clients
        raise QuorumError(f"--client {client}: run {row.id} has no such client; it has {', '.join(known)}")
    return row


def model_of_client(row: RunRow, client: str) -> Path:
    """The file of the model that a client has. Raises QuorumError if the run has none of it."""
    own = layout.adapter(row.id, SERVER, client)  # where it is tested on the server's examples
    return own if own.is_file() else model_file(row.id, client)


def summarizer_of(row: RunRow, client: str, name: str, merge: str) -> Summarizer:
    """Load a run's backbone and a client's adapter. Raises QuorumError if one is missing, or it writes no summaries."""
    rule = read_order(layout.order("predict", row.name), PredictOrder).rule
    if rule is None or row.learner is None:
        raise QuorumError(f"--run {row.name}: writes no summaries; choose another run")
    from pipeline.model.adapter import on_device, read_adapter

    reading = reading_of(row.learner)
    adapter = on_device(read_adapter(model_of_client(row, client)), reading.model.device)
    return Summarizer(name, reading, rule, adapter, merge)


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


def nearest_turns(
    meeting: Sequence[Turn], query: str, fits: Callable[[list[Turn]], bool], precision: Precision = "fp32"
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
