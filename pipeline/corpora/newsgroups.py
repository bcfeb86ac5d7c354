"""20 Newsgroups, the by-date split: a folder a group, a file a post.

Lang, "NewsWeeder: Learning to Filter Netnews", ICML 1995; the by-date split is J. Rennie's. It has no development set:
ours is the first training posts of each group in a fixed shuffle.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pipeline.corpora.example import Split
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.labelled import Labelled

FOLDERS: dict[Split, str] = {"train": "20news-bydate-train", "test": "20news-bydate-test"}
DEVELOPMENT = 20
"""Development posts of each group."""
Headers = Literal["all", "subject"]
_ANSWERS = re.compile(r"\A(?:(?:re|fwd?)\s*+(?:\[\d++\]\s*+)?:\s*+)++", flags=re.IGNORECASE)
"""`Re: Fwd: re[2]: `, at the beginning of a subject."""


def read(folder: Path, headers: Headers) -> list[Labelled]:
    """The posts below `data/`; line breaks become spaces.

    Args:
        headers: `all` reads the whole file, as FedNLP's code does; `subject` only the subject and the body, because a
            header of usual length fills 64 tokens.
    """
    found: list[Labelled] = []
    for split, name in FOLDERS.items():
        for group in sorted(path for path in (folder / "data" / name).glob("*") if path.is_dir()):
            posts = [_post(path, split, group.name, headers) for path in sorted(group.iterdir())]
            first = set(hash_order([post.id for post in posts])[:DEVELOPMENT]) if split == "train" else set()
            found += [replace(post, split="val") if post.id in first else post for post in posts]
    return found


def _post(path: Path, split: Split, group: str, headers: Headers) -> Labelled:
    content = path.read_text(encoding="latin-1")
    head, _, body = content.partition("\n\n")
    subject = next((line[8:].strip() for line in head.splitlines() if line.lower().startswith("subject:")), "")
    text = content if headers == "all" else f"{subject}\n{body}"
    identity, thread = f"20news/{split}/{group}/{path.name}", _ANSWERS.sub("", subject).lower()
    return Labelled(identity, split, group, f"{group}/{thread}" if thread else identity, " ".join(text.split()), group)
