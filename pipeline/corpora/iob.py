"""Words with tags of named entities, a word a line: Universal NER's English EWT, and WNUT 17.

Mayhew et al., "Universal NER", NAACL 2024, over the English Web Treebank; Derczynski et al., "Results of the WNUT2017
Shared Task on Novel and Emerging Entity Recognition", W-NUT 2017.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.corpora.example import Split
from pipeline.corpora.labelled import Tagged
from pipeline.errors import QuorumError

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
        for about, rows in _blocks(folder / name):
            values = dict(line.removeprefix("# ").split(" = ", 1) for line in about if " = " in line)
            document, identity = values.get("newdoc id", document), values["sent_id"]
            words, tags = (row[1] for row in rows), ("O" if row[2] in OTHER else row[2] for row in rows)
            domain = identity.partition("-")[0]
            found.append(Tagged(f"uner/{split}/{identity}", split, domain, document, tuple(words), tuple(tags)))
    return found


def read_wnut(folder: Path) -> list[Tagged]:
    """Posts without owners; each is a group."""
    found = []
    for split, name in WNUT.items():
        for number, (_, rows) in enumerate(_blocks(folder / name)):
            identity = f"wnut/{split}/{number}"
            words, tags = (row[0] for row in rows), (row[1] for row in rows)
            found.append(Tagged(identity, split, "", identity, tuple(words), tuple(tags)))
    return found


def check_bio(tags: Sequence[str], where: str) -> None:
    """Check the tags of a sentence.

    Raises:
        QuorumError: a tag is none of O, B-X and I-X, or an I-X does not follow a B-X or I-X.
    """
    before = ""
    for number, tag in enumerate(tags, 1):
        if tag != "O" and not (tag[:2] in ("B-", "I-") and len(tag) > 2):
            raise QuorumError(f"{where}: tag {number}, {tag!r}: is not BIO; write O, B-TYPE or I-TYPE")
        if tag[0] == "I" and before[2:] != tag[2:]:
            found = f"follows {before!r}" if before else "begins the sentence"
            raise QuorumError(f"{where}: tag {number}, {tag!r}: {found}; begin each span with B-{tag[2:]}")
        before = tag


def _blocks(path: Path) -> Iterator[tuple[list[str], list[list[str]]]]:
    """(Comments, rows of cells) of every sentence; an empty line separates two."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; run `dvc repro ingest`") from None
    about: list[str] = []
    rows: list[list[str]] = []
    for line in [*lines, ""]:
        if line.startswith("# ") and not rows:
            about.append(line)
        elif line.strip():
            rows.append(line.split("\t"))
        elif rows:
            check_bio([row[2 if len(row) > 2 else 1] for row in rows], str(path))
            yield about, rows
            about, rows = [], []
