"""SAMSum dialogues -> examples.

Gliwa et al., "SAMSum Corpus: A Human-annotated Dialogue Dataset for Abstractive Summarization", 2019. One zip with
`train.csv`, `validation.csv` and `test.csv`, columns id, dialogue, summary; a line of a dialogue is `Name: words`.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import Split
from pipeline.corpora.notes import Notes
from pipeline.corpora.text import turns_of
from pipeline.errors import QuorumError

CLIENT = "SAMSum"
FILES: dict[Split, str] = {"train": "train.csv", "val": "validation.csv", "test": "test.csv"}

LONGEST_NAME = 40
"""Letters before a colon, at most, that are a name."""


def read(folder: Path, query: str, notes: Notes) -> tuple[list[Conversation], int]:
    """`samsum.zip` in a folder -> (examples, number of dialogues).

    An empty dialogue is an example without turns, and counted; a row without a summary is left out and counted.

    Raises:
        QuorumError: the zip is missing or damaged, or lacks a file or a column.
    """
    path = folder / "samsum.zip"
    examples: list[Conversation] = []
    dialogues = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for split, name in FILES.items():
                for identity, dialogue, summary in _rows(archive, name):
                    dialogues += 1
                    turns = turns_of(lines_of(dialogue), first="Someone")
                    example = Conversation(
                        f"samsum/{identity}", "samsum", CLIENT, split, identity, query, turns, summary
                    )
                    if notes.keeps(example):
                        examples.append(example)
    except (FileNotFoundError, zipfile.BadZipFile, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise QuorumError(f"{path}: not SAMSum's zip ({error}); run `dvc repro ingest@samsum`") from None
    return examples, dialogues


def lines_of(dialogue: str) -> Iterator[tuple[str | None, str]]:
    """Lines of a dialogue as (speaker, words); the speaker is None where a line has no name before a colon."""
    for line in map(str.strip, dialogue.splitlines()):
        name, colon, words = line.partition(":")
        yield (name.strip(), words.strip()) if colon and 0 < len(name) <= LONGEST_NAME else (None, line)


def _rows(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, str, str]]:
    found = [path for path in archive.namelist() if path.split("/")[-1] == name and not path.startswith("__")]
    if not found:
        raise KeyError(f"no {name}")
    with archive.open(found[0]) as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline="")):
            yield row["id"].strip(), row["dialogue"] or "", (row["summary"] or "").strip()
