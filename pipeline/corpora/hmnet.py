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
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.conversation import Dialogue, Turn
from pipeline.corpora.example import FOLDERS, Split
from pipeline.corpora.text import clean, joined
from pipeline.workspace.record import Json

ROLES = {"PM": "Project Manager", "ME": "Marketing", "ID": "Industrial Designer", "UI": "User Interface"}
"""AMI's four roles, one person each, by the names that QMSum gives them; ICSI's are titles that several may share."""


def read(folder: Path) -> Iterator[Dialogue]:
    """The meetings in `train`, `dev` and `test` somewhere below a folder."""
    for split, name in FOLDERS.items():
        for path in sorted(folder.rglob(f"{name}/*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as stream:
                for line in stream:
                    yield _meeting(json.loads(line), split)


def _meeting(row: Json, split: Split) -> Dialogue:
    said = [(ROLES.get(t["role"]) or f"{t['role']} {t['speaker']}", joined(t["utt"]["word"])) for t in row["meeting"]]
    summary = " ".join(joined(sentence.split()) for sentence in row["summary"])
    turns = tuple(Turn(speaker, text) for speaker, text in said if text)
    return Dialogue(str(row["id"]), split, str(row["id"]), turns, clean(summary))
