"""SAMSum dialogues.

Gliwa et al., "SAMSum Corpus: A Human-annotated Dialogue Dataset for Abstractive Summarization", 2019. One zip with
`train.csv`, `validation.csv` and `test.csv`, columns id, dialogue, summary; a line of a dialogue is `Name: words`.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.conversation import Dialogue
from pipeline.corpora.example import Split
from pipeline.corpora.text import turns_of

FILES: dict[Split, str] = {"train": "train.csv", "val": "validation.csv", "test": "test.csv"}

LONGEST_NAME = 40
"""Letters before a colon, at most, that are a name."""


def read(folder: Path) -> Iterator[Dialogue]:
    """The dialogues in a folder's `samsum.zip`; some are empty."""
    with zipfile.ZipFile(folder / "samsum.zip") as archive:
        paths = {Path(path).name: path for path in archive.namelist() if not path.startswith("__")}
        for split, name in FILES.items():
            with archive.open(paths[name]) as raw:
                for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline=""), restval=""):
                    identity, turns = row["id"].strip(), turns_of(lines_of(row["dialogue"]), first="Someone")
                    yield Dialogue(identity, split, identity, turns, row["summary"].strip())


def lines_of(dialogue: str) -> Iterator[tuple[str | None, str]]:
    """Lines of a dialogue as (speaker, words); the speaker is None where a line has no name before a colon."""
    for line in map(str.strip, dialogue.splitlines()):
        name, colon, words = line.partition(":")
        yield (name.strip(), words.strip()) if colon and 0 < len(name) <= LONGEST_NAME else (None, line)
