"""Published texts with labels, tags, answers or titles.

20 Newsgroups: Lang, "NewsWeeder: Learning to Filter Netnews", ICML 1995; the by-date split is J. Rennie's.

Universal NER's English EWT: Mayhew et al., "Universal NER", NAACL 2024, over the English Web Treebank. WNUT 17:
Derczynski et al., "Results of the WNUT2017 Shared Task on Novel and Emerging Entity Recognition", W-NUT 2017.

SQuAD 1.1: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016.

The Annotated Enron Subject Line Corpus: Zhang and Tetreault, "This Email Could Save Your Life: Introducing the Task of
Email Subject Line Generation", ACL 2019.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Literal

from pipeline.corpora.example import FOLDERS, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.labelled import Labelled, Question, Tagged, Titled
from pipeline.corpora.text import normal
from pipeline.workspace.files import read_json

POSTS: dict[Split, str] = {"train": "20news-bydate-train", "test": "20news-bydate-test"}
DEVELOPMENT = 20  # development posts of each newsgroup
Headers = Literal["all", "subject"]
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
SQUAD: dict[Split, str] = {
    "train": "commit_6026097/test-v1.1.json",
    "val": "commit_88cc78c/dev-v1.1.json",
    "test": "commit_88cc78c/test-v1.1.json",
}
OTHER = ("B-OTH", "I-OTH", "B-O")
"""Types of UNER's training file alone, of which only the first version is published; they become O."""
_ANSWERS = re.compile(r"\A(?:(?:re|fwd?)\s*+(?:\[\d++\]\s*+)?:\s*+)++", flags=re.IGNORECASE)
"""`Re: Fwd: re[2]: `, at the beginning of a subject."""
_PARTS = re.compile(r"\n@(subject|ann\d)\n")  # what begins a title in a file of AESLC


def newsgroups(folder: Path, headers: Headers) -> list[Labelled]:
    """The posts below `data/`, a folder a group, a file a post; line breaks become spaces.

    The by-date split has no development set: ours is the first training posts of each group in a fixed shuffle.

    `headers`: `all` reads the whole file, as FedNLP's code does; `subject` only the subject and the body, because a
    header of usual length fills 64 tokens.
    """
    found: list[Labelled] = []
    for split, name in POSTS.items():
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


def uner(folder: Path) -> list[Tagged]:
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


def wnut(folder: Path) -> list[Tagged]:
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


def squad(folder: Path) -> list[Question]:
    """Questions, whose owner is the article and whose group is the paragraph.

    Split by article: 44 of the training articles for training, the 48 of the development set for test.
    """
    found: list[Question] = []
    for split, name in SQUAD.items():
        for article in read_json(folder / name)["data"]:
            title = article["title"]
            for number, paragraph in enumerate(article["paragraphs"]):
                for row in paragraph["qas"]:
                    identity, text, context = f"squad/{row['id']}", row["question"].strip(), paragraph["context"]
                    answers = tuple((one["text"], one["answer_start"]) for one in row["answers"])
                    found.append(Question(identity, split, title, f"{title}/{number}", text, context, answers))
    return found


def aeslc(folder: Path) -> tuple[list[Titled], int]:
    """Emails, whose owner is the mailbox, and how many training emails recur in dev or test, and are left out."""
    here = folder / "enron_subject_line"
    emails = [_email(path, split) for split, own in FOLDERS.items() for path in sorted((here / own).glob("*.subject"))]
    evaluated = {normal(email.text) for email in emails if email.split != "train"}
    kept = [email for email in emails if email.split != "train" or normal(email.text) not in evaluated]
    return kept, len(emails) - len(kept)


def _email(path: Path, split: Split) -> Titled:
    body, *parts = _PARTS.split(path.read_text(encoding="utf-8"))
    titles = dict(zip(parts[::2], (" ".join(part.split()) for part in parts[1::2]), strict=True))
    identity, title = f"aeslc/{split}/{path.stem}", titles.pop("subject")
    return Titled(identity, split, path.stem.partition("_")[0], identity, body.strip(), title, tuple(titles.values()))
