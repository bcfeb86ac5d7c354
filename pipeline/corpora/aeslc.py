"""The Annotated Enron Subject Line Corpus: the body of an email, its subject, and three that annotators gave it.

Zhang and Tetreault, "This Email Could Save Your Life: Introducing the Task of Email Subject Line Generation", ACL 2019.
"""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.corpora.example import FOLDERS, Split
from pipeline.corpora.labelled import Titled
from pipeline.corpora.text import normal

_PARTS = re.compile(r"\n@(subject|ann\d)\n")


def read(folder: Path) -> tuple[list[Titled], int]:
    """Emails, whose owner is the mailbox, and how many training emails recur in dev or test, and are left out."""
    here = folder / "enron_subject_line"
    emails = [
        _email(path, split) for split, name in FOLDERS.items() for path in sorted((here / name).glob("*.subject"))
    ]
    evaluated = {normal(email.text) for email in emails if email.split != "train"}
    kept = [email for email in emails if email.split != "train" or normal(email.text) not in evaluated]
    return kept, len(emails) - len(kept)


def _email(path: Path, split: Split) -> Titled:
    body, *parts = _PARTS.split(path.read_text(encoding="utf-8"))
    titles = dict(zip(parts[::2], (" ".join(part.split()) for part in parts[1::2]), strict=True))
    identity, title = f"aeslc/{split}/{path.stem}", titles.pop("subject")
    return Titled(identity, split, path.stem.partition("_")[0], identity, body.strip(), title, tuple(titles.values()))
