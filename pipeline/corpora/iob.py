"""Words with tags of named entities, a word a line: Universal NER's English EWT, and WNUT 17.

Mayhew et al., "Universal NER", NAACL 2024, over the English Web Treebank; Derczynski et al., "Results of the WNUT2017
Shared Task on Novel and Emerging Entity Recognition", W-NUT 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pipeline.corpora.example import Split
from pipeline.corpora.labelled import Tagged

UNER: dict[Split, str] = {
    "train": "first_commit_train/en_ewt-ud-train.iob2",
    "val": "en_ewt-ud-dev.iob2",
    "test": "en_ewt-ud-test.iob2",
}
WNUT: dict[Split, str] = {
    "train": "data/WNUT17/CONLL-format/data/train/wnut17train.conll",
    "val": "data/WNUT17/CONLL-format/data/dev/emerging.dev.conll",
    "test": "data/WNUT17/CONLL-format/data/test/emerging.test.annotated",
}
OTHER = ("B-OTH", "I-OTH", "B-O")
"""Types of the training file alone, of which only the first version is published; they become O."""


def read_uner(folder: Path) -> list[Tagged]:
    """Sentences. The owner is the domain, with which a sentence's name begins; the group is its document."""
    found = []
    for split, name in UNER.items():
        document = ""
        for lines in _blocks(folder / name):
            about = dict(line.removeprefix("# ").split(" = ", 1) for line in lines if line.startswith("# "))
            rows = [line.split("\t") for line in lines if not line.startswith("# ")]
            document, identity = about.get("newdoc id", document), about["sent_id"]
            words, tags = (row[1] for row in rows), ("O" if row[2] in OTHER else row[2] for row in rows)
            domain = identity.partition("-")[0]
            found.append(Tagged(f"uner/{split}/{identity}", split, domain, document, tuple(words), tuple(tags)))
    return found


def read_wnut(folder: Path) -> list[Tagged]:
    """Posts without owners; each is a group."""
    found = []
    for split, name in WNUT.items():
        for number, lines in enumerate(_blocks(folder / name)):
            identity, rows = f"wnut/{split}/{number}", [line.split("\t") for line in lines]
            words, tags = (row[0] for row in rows), (row[1] for row in rows)
            found.append(Tagged(identity, split, "", identity, tuple(words), tuple(tags)))
    return found


def _blocks(path: Path) -> Iterator[list[str]]:
    """The lines of every sentence; an empty line separates two."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for is_filled, block in groupby(lines, key=lambda line: bool(line.strip())):
        if is_filled:
            yield list(block)
