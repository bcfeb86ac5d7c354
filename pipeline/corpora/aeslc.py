"""The Annotated Enron Subject Line Corpus: the body of an email, its subject, and three that annotators gave it.

Zhang and Tetreault, "This Email Could Save Your Life: Introducing the Task of Email Subject Line Generation", ACL 2019.
"""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.corpora.example import Split
from pipeline.corpora.labelled import Titled
from pipeline.corpora.text import normal
from pipeline.errors import QuorumError

FOLDERS: dict[Split, str] = {"train": "train", "val": "dev", "test": "test"}
_PARTS = re.compile(r"\n@(subject|ann\d)\n")


def read(folder: Path) -> tuple[list[Titled], int]:
    """Emails, whose owner is the mailbox, and how many training emails recur in dev or test, and are left out."""
    train, val, test = (_read(folder / "enron_subject_line" / name, split) for split, name in FOLDERS.items())
    evaluated = {normal(email.text) for email in (*val, *test)}
    trained = [email for email in train if normal(email.text) not in evaluated]
    return [*trained, *val, *test], len(train) - len(trained)


def _read(folder: Path, split: Split) -> list[Titled]:
    paths = sorted(folder.glob("*.subject"))
    if not paths:
        raise QuorumError(f"{folder}: holds no email; run `dvc repro ingest@aeslc`")
    return [_email(path, split) for path in paths]


def _email(path: Path, split: Split) -> Titled:
    body, *parts = _PARTS.split(path.read_text(encoding="utf-8"))
    named = dict(zip(parts[::2], (" ".join(part.split()) for part in parts[1::2]), strict=True))
    title = named.pop("subject", "")
    if not title:
        raise QuorumError(f"{path}: has no @subject; run `dvc repro ingest@aeslc`")
    identity = f"aeslc/{split}/{path.stem}"
    return Titled(identity, split, path.stem.partition("_")[0], identity, body.strip(), title, tuple(named.values()))
