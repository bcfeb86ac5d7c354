"""SAMSum dialogues -> examples.

Gliwa et al., "SAMSum Corpus: A Human-annotated Dialogue Dataset for Abstractive Summarization", 2019. One zip with
`train.csv`, `validation.csv` and `test.csv`, columns id, dialogue, summary; a line of a dialogue is `Name: words`.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.example import Example, Split, Turn
from pipeline.corpora.notes import Notes
from pipeline.errors import QuorumError

CLIENT = "SAMSum"
FILES: dict[Split, str] = {"train": "train.csv", "val": "validation.csv", "test": "test.csv"}

_LINE = re.compile(r"^([^:]{1,40}):\s*(.*)$")


def read(folder: Path, query: str, notes: Notes) -> tuple[list[Example], int]:
    """`samsum.zip` in a folder -> (examples, number of dialogues).

    A dialogue without a word is kept and counted; a row without a summary is left out and counted.

    Raises:
        QuorumError: the zip is missing or damaged, or lacks a file or a column.
    """
    path = folder / "samsum.zip"
    examples: list[Example] = []
    dialogues = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for split, name in FILES.items():
                for identity, dialogue, summary in _rows(archive, name):
                    dialogues += 1
                    turns = turns_of(dialogue)
                    example = Example(f"samsum/{identity}", "samsum", CLIENT, split, identity, query, turns, summary)
                    if notes.keeps(example):
                        examples.append(example)
    except (FileNotFoundError, zipfile.BadZipFile, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise QuorumError(f"{path}: not SAMSum's zip ({error}); run `dvc repro ingest@samsum`") from None
    return examples, dialogues


def turns_of(dialogue: str) -> tuple[Turn, ...]:
    """A dialogue's lines; one without a name goes on with the last speaker's words."""
    turns: list[Turn] = []
    for line in filter(None, (line.strip() for line in dialogue.splitlines())):
        match = _LINE.match(line)
        if match and match.group(2):
            turns.append(Turn(match.group(1).strip(), match.group(2).strip()))
        elif not match and turns:
            turns[-1] = Turn(turns[-1].speaker, f"{turns[-1].text} {line}")
        elif not match:
            turns.append(Turn("Someone", line))
    return tuple(turns)


def _rows(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, str, str]]:
    found = [path for path in archive.namelist() if path.split("/")[-1] == name and not path.startswith("__")]
    if not found:
        raise KeyError(f"no {name}")
    with archive.open(found[0]) as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline="")):
            yield row["id"].strip(), row["dialogue"] or "", (row["summary"] or "").strip()
