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
from pipeline.errors import QuorumError

FILES: dict[Split, str] = {"train": "train.csv", "val": "validation.csv", "test": "test.csv"}

LONGEST_NAME = 40
"""Letters before a colon, at most, that are a name."""


def read(folder: Path) -> Iterator[Dialogue]:
    """The dialogues in a folder's `samsum.zip`; some are empty."""
    path = folder / "samsum.zip"
    try:
        with zipfile.ZipFile(path) as archive:
            for split, name in FILES.items():
                for row in _rows(archive, name):
                    identity, turns = row["id"].strip(), turns_of(lines_of(row["dialogue"]), first="Someone")
                    yield Dialogue(identity, split, identity, turns, row["summary"].strip())
    except (FileNotFoundError, zipfile.BadZipFile, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise QuorumError(f"{path}: not SAMSum's zip ({error}); run `dvc repro ingest@samsum`") from None


def lines_of(dialogue: str) -> Iterator[tuple[str | None, str]]:
    """Lines of a dialogue as (speaker, words); the speaker is None where a line has no name before a colon."""
    for line in map(str.strip, dialogue.splitlines()):
        name, colon, words = line.partition(":")
        yield (name.strip(), words.strip()) if colon and 0 < len(name) <= LONGEST_NAME else (None, line)


def _rows(archive: zipfile.ZipFile, name: str) -> Iterator[dict[str, str]]:
    found = [path for path in archive.namelist() if path.split("/")[-1] == name and not path.startswith("__")]
    if not found:
        raise KeyError(f"no {name}")
    with archive.open(found[0]) as raw:
        yield from csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline=""), restval="")
