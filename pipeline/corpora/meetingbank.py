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
from pipeline.errors import QuorumError
from pipeline.workspace.files import read_jsonl

FILES: dict[Split, str] = {"train": "train", "val": "validation", "test": "test"}
HOW_TO_GET = (
    "download train.json, validation.json and test.json of MeetingBank "
    "(https://huggingface.co/datasets/huuuyeah/meetingbank) into meetingbank/ of the mirror (QUORUM_MIRROR)"
)


def read(folder: Path) -> Iterator[Dialogue]:
    """The segments in three files of JSON lines."""
    for split, name in FILES.items():
        path = min(folder.rglob(f"{name}.json*"), default=folder / f"{name}.json")
        for number, row in enumerate(read_jsonl(path, HOW_TO_GET), 1):
            try:
                uid, transcript, summary = str(row["uid"]), clean(row["transcript"]), clean(row["summary"])
            except (KeyError, TypeError) as error:
                raise QuorumError(
                    f"{path}: line {number}: not a segment of MeetingBank ({error!r}); {HOW_TO_GET}"
                ) from None
            # City and date are the meeting; what follows is the item of its agenda.
            meeting = "_".join(uid.split("_")[:2])
            yield Dialogue(uid, split, meeting, (Turn("Speaker", transcript),) if transcript else (), summary)
