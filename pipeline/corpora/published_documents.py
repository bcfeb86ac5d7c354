"""Published documents with summaries: BBC News Summary, SciTLDR, SumPubMed, meetings. FedSum's data is not to be had.

Each reader gives documents, and how many it left out: copies, texts that recur in a later split, and training documents
of fewer than three units, as FedSum's training does.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.documents import Document, cut, sentences
from pipeline.corpora.example import Split
from pipeline.corpora.people_files import text_of
from pipeline.corpora.text import normal
from pipeline.workspace.files import read_jsonl

LEAST_UNITS = 3  # of a training document
SHARE = 0.43  # of an article's sentences, in its extract (BBC)
EXTRACTED, SHORTEST = 6, 6
"""Units of an extract; units of fewer words are left out, as by FedSum's preprocessing (SumPubMed, meetings)."""

Documents = tuple[list[Document], int]


def bbc(folder: Path) -> Documents:
    """Articles of five topics, each with an extract that is published as text without spaces between its sentences.

    Greene and Cunningham, ICML 2006; extracts of Kaggle's `bbc-news-summary`. 400 test and 100 val articles are the
    first ones in the order of the hashes of their paths.
    """
    folder = folder / "BBC News Summary"
    paths = sorted((folder / "News Articles").glob("*/*.txt"))
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(_letters("".join(_body(path))), path)
    names = {f"bbc/{path.parent.name}/{path.name}": path for path in first.values()}
    splits = _splits(names, tested=400, validated=100)
    return _used([_article(name, splits[name], path) for name, path in names.items()], len(paths))


def _article(identity: str, split: Split, path: Path) -> Document:
    summary = path.parents[2] / "Summaries" / path.parent.name / path.name
    units = sentences("\n".join(_body(path)))
    labels = extracted(units, text_of(summary))
    reference = "\n".join(unit for unit, own in zip(units, labels, strict=True) if own)
    return Document(identity, split, path.parent.name, identity, tuple(map(cut, units)), labels, (reference,), SHARE)


def extracted(units: Sequence[str], summary: str) -> tuple[int, ...]:
    """1 for each unit whose letters are in the summary: the longest first, each stretch of the summary once.

    >>> extracted(["It rose.", "It rose. So it was.", "He left."], "It rose. So it was.He left.")
    (0, 1, 1)
    """
    rest, labels = _letters(summary), [0] * len(units)
    for place in sorted(range(len(units)), key=lambda i: -len(_letters(units[i]))):
        letters = _letters(units[place])
        if letters and letters in rest:
            labels[place] = 1
            rest = rest.replace(letters, "\n", 1)
    return tuple(labels)


def scitldr(folder: Path) -> Documents:
    """Abstracts of papers, each with the sentence nearest to its one-sentence summaries.

    Cachola et al., Findings of EMNLP 2020; the part with abstracts.
    """
    files: dict[Split, str] = {"train": "train", "val": "dev", "test": "test"}
    papers = []
    for split, name in files.items():
        for row in read_jsonl(folder / "SciTLDR-Data" / "SciTLDR-A" / f"{name}.jsonl"):
            identity = f"scitldr/{split}/{row['paper_id']}"
            units, labels = tuple(map(cut, row["source"])), tuple(row["source_labels"])
            targets = tuple(" ".join(target.split()) for target in row["target"])
            papers.append(Document(identity, split, "", identity, units, labels, targets, 1))
    order = list(files)
    last = {normal(one.text): order.index(one.split) for one in papers}
    return _used([one for one in papers if last[normal(one.text)] == order.index(one.split)], len(papers))


def sumpubmed(folder: Path) -> Documents:
    """Biomedical articles, a sentence a line, with short abstracts and no published extract.

    Gupta et al., ACL student workshop 2021. 300 test and 100 val articles are the first ones in the order of the hashes
    of their numbers.
    """
    paths = {f"sumpubmed/{path.stem.partition('_')[2]}": path for path in (folder / "line_text").glob("text_*.txt")}
    articles = []
    for name, split in _splits(paths, tested=300, validated=100).items():
        abstract = folder / "shorter_abstract" / f"abst_{name.partition('/')[2]}.txt"
        lines = (cut(line) for line in text_of(paths[name]).splitlines())
        units = tuple(unit for unit in lines if len(unit.split()) >= SHORTEST)
        reference = "\n".join(line.strip() for line in text_of(abstract).splitlines() if line.strip())
        articles.append(Document(name, split, "", name, units, (), (reference,), EXTRACTED))
    return _used(articles, len(paths))


def of_meetings(queried: Sequence[Conversation]) -> Documents:
    """The turns of each query's spans as units, and its summary; the query is not read, which BERTSUM has none of."""
    documents = []
    for one in queried:
        units = tuple(cut(turn.text) for turn in one.turns if len(turn.text.split()) >= SHORTEST)
        summary = "\n".join(sentences(one.target))
        if units:
            documents.append(Document(one.id, one.split, one.owner, one.group, units, (), (summary,)))
    return _used(documents, len(queried))


def _splits(names: Iterable[str], tested: int, validated: int) -> dict[str, Split]:
    """Name -> split, in the order of the names' hashes: the first ones are tested, the next ones validate."""
    order = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    splits: dict[str, Split] = dict.fromkeys(order, "train")
    return splits | dict.fromkeys(order[tested : tested + validated], "val") | dict.fromkeys(order[:tested], "test")


def _used(documents: Sequence[Document], published: int) -> Documents:
    """Documents without short ones of training, and how many of the published are left out."""
    used = [one for one in documents if one.split != "train" or len(one.units) >= LEAST_UNITS]
    return used, published - len(used)


def _body(path: Path) -> list[str]:
    """The lines of an article without its title."""
    return [line for line in text_of(path).splitlines()[1:] if line.strip()]


def _letters(text: str) -> str:
    return "".join(text.split())
