"""MeetingBank segments -> examples.

Hu et al., "MeetingBank: A Benchmark Dataset for Meeting Summarization", ACL 2023. JSON lines, a segment of a city
council's meeting a line: `id`, `uid` (city, date and item: `SeattleCityCouncil_12142015_Res 31669`), `transcript`
(running text, no speakers) and `summary`; files train, validation and test, `.json` or `.jsonl`.

A meeting's segments may be in several splits. If one is in the test, those in training and validation are left out and
counted.
"""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.corpora.conversation import Conversation, Turn
from pipeline.corpora.example import Split
from pipeline.corpora.notes import Notes
from pipeline.corpora.text import clean
from pipeline.errors import QuorumError

CLIENT = "MeetingBank"
FILES: dict[Split, str] = {"train": "train", "val": "validation", "test": "test"}
HOW_TO_GET = (
    "download train.json, validation.json and test.json of MeetingBank "
    "(https://huggingface.co/datasets/huuuyeah/meetingbank) into meetingbank/ of the mirror (QUORUM_MIRROR)"
)


def read(folder: Path, query: str, notes: Notes) -> tuple[list[Conversation], int]:
    """Three files of JSON lines -> (examples, number of meetings).

    Raises:
        QuorumError: a file is missing, or a line is not a segment.
    """
    examples: list[Conversation] = []
    for split, name in FILES.items():
        paths = sorted(folder.rglob(f"{name}.json*"))
        if not paths:
            raise QuorumError(f"{folder}: has no {name}.json; {HOW_TO_GET}")
        for number, line in enumerate(paths[0].read_text(encoding="utf-8").split("\n"), 1):
            if not line.strip():
                continue
            example = _example(line, f"{paths[0]}: line {number}", split, query)
            if notes.keeps(example):
                examples.append(example)
    tested = {example.meeting for example in examples if example.split == "test"}
    found = [example for example in examples if example.split == "test" or example.meeting not in tested]
    notes.dropped_tested_meeting += [e.id for e in examples if e.split != "test" and e.meeting in tested]
    return found, len({example.meeting for example in found})


def _example(line: str, where: str, split: Split, query: str) -> Conversation:
    try:
        row = json.loads(line)
        uid, transcript, summary = str(row["uid"]), clean(row["transcript"]), clean(row["summary"])
    except (ValueError, KeyError, TypeError) as error:
        raise QuorumError(f"{where}: not a segment of MeetingBank ({error!r}); {HOW_TO_GET}") from None
    # City and date are the meeting; what follows is the item of its agenda.
    meeting = "_".join(uid.split("_")[:2])
    turns = (Turn("Speaker", transcript),) if transcript else ()
    return Conversation(f"meetingbank/{uid}", "meetingbank", CLIENT, split, meeting, query, turns, summary)
