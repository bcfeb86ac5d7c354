"""AMI and ICSI meetings, from the files of HMNet.

Zhu et al., "A Hierarchical Network for Abstractive Meeting Summarization with Cross-Domain Pretraining", Findings of
EMNLP 2020. Gzipped JSON lines, a meeting a line: `id`, `meeting` [{speaker, role, utt: {word: [...]}}], `summary`
[sentence, ...]; folders train, dev and test. AMI: Carletta et al., 2005. ICSI: Janin et al., 2003.

QMSum's Product and Academic meetings are the same recordings in other splits: `clients.manifest.check` refuses a
manifest with a recording in training and in a test.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.conversation import Dialogue, Turn
from pipeline.corpora.example import Split
from pipeline.corpora.text import clean, joined
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json

FOLDERS: dict[Split, str] = {"train": "train", "val": "dev", "test": "test"}
ROLES = {"PM": "Project Manager", "ME": "Marketing", "ID": "Industrial Designer", "UI": "User Interface"}
"""AMI's four roles, one person each, by the names that QMSum gives them; ICSI's are titles that several may share."""


def read(folder: Path) -> Iterator[Dialogue]:
    """The meetings in `train`, `dev` and `test` somewhere below a folder."""
    for split, name in FOLDERS.items():
        paths = sorted(folder.rglob(f"{name}/*.jsonl.gz"))
        if not paths:
            raise QuorumError(f"{folder}: has no {name}/*.jsonl.gz; run `dvc repro ingest`")
        for path in paths:
            try:
                with gzip.open(path, "rt", encoding="utf-8") as stream:
                    for line in stream:
                        yield _meeting(json.loads(line), split)
            except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
                raise QuorumError(
                    f"{path}: no meetings of HMNet's ({error!r}); restore the file as published"
                ) from None


def _meeting(row: Json, split: Split) -> Dialogue:
    said = [(ROLES.get(t["role"]) or f"{t['role']} {t['speaker']}", joined(t["utt"]["word"])) for t in row["meeting"]]
    summary = " ".join(joined(sentence.split()) for sentence in row["summary"])
    turns = tuple(Turn(speaker, text) for speaker, text in said if text)
    return Dialogue(str(row["id"]), split, str(row["id"]), turns, clean(summary))
