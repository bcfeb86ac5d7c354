"""MeetingBank segments.

Hu et al., "MeetingBank: A Benchmark Dataset for Meeting Summarization", ACL 2023. JSON lines, a segment of a city
council's meeting a line: `id`, `uid` (city, date and item: `SeattleCityCouncil_12142015_Res 31669`), `transcript`
(running text, no speakers) and `summary`; files train, validation and test, `.json` or `.jsonl`. A meeting's segments
may be in several splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.conversation import Dialogue, Turn
from pipeline.corpora.example import Split
from pipeline.corpora.text import clean
from pipeline.workspace.files import read_jsonl

FILES: dict[Split, str] = {"train": "train", "val": "validation", "test": "test"}
REMEDY = "lay it into meetingbank/ of the mirror, and run `dvc repro`"


def read(folder: Path) -> Iterator[Dialogue]:
    """The segments in three files of JSON lines."""
    for split, name in FILES.items():
        for row in read_jsonl(min(folder.rglob(f"{name}.json*"), default=folder / f"{name}.json"), REMEDY):
            uid, transcript, summary = str(row["uid"]), clean(row["transcript"]), clean(row["summary"])
            # City and date are the meeting; what follows is the item of its agenda.
            meeting = "_".join(uid.split("_")[:2])
            yield Dialogue(uid, split, meeting, (Turn("Speaker", transcript),) if transcript else (), summary)
