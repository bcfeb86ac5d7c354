"""Statistics of a corpus, Table II (QMSum's by the paper and by us), texts that two splits share, lost letters."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations, product
from operator import attrgetter
from statistics import fmean
from typing import Any

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS, Example
from pipeline.corpora.text import normal
from pipeline.workspace.record import Json

# Table II of the paper: (pairs, average turns, speakers, words of input, words of summary).
PAPER: dict[tuple[str, str], tuple[int, float, float, float, float]] = {
    ("Academic", "train"): (218, 54.64, 4.35, 1049.8, 46.22),
    ("Academic", "val"): (45, 59.33, 4.09, 1156.53, 50.67),
    ("Academic", "test"): (49, 46.45, 4.22, 912.00, 43.82),
    ("Committee", "train"): (284, 9.51, 3.26, 667.14, 77.95),
    ("Committee", "val"): (67, 9.13, 3.10, 607.9, 73.67),
    ("Committee", "test"): (66, 10.85, 4.14, 713.26, 69.94),
    ("Product", "train"): (593, 68.61, 3.76, 898.04, 65.09),
    ("Product", "val"): (125, 79.30, 3.90, 903.53, 65.38),
    ("Product", "test"): (129, 77.86, 3.93, 933.67, 57.38),
}
COLUMNS = ("pairs", "turns", "speakers", "words", "summary_words")
LOST = 0.02  # the share of a reference's letters that ROUGE may lose unsaid


def summarize(examples: Sequence[Conversation]) -> dict[str, float]:
    """Pairs, and the averages of turns, distinct speakers, words spoken and words of summary, to two digits."""
    if not examples:
        return dict.fromkeys(COLUMNS, 0.0)
    figures = {
        "pairs": len(examples),
        "turns": fmean(len(e.turns) for e in examples),
        "speakers": fmean(len({t.speaker for t in e.turns}) for e in examples),
        "words": fmean(sum(len(t.text.split()) for t in e.turns) for e in examples),
        "summary_words": fmean(len(e.target.split()) for e in examples),
    }
    return {column: round(value, 2) for column, value in figures.items()}


def table(examples: Sequence[Conversation]) -> list[Json]:
    """Statistics, one row for each domain and split."""
    rows: list[Json] = []
    for domain, split in product(dict.fromkeys(e.domain for e in examples), SPLITS):
        chosen = [e for e in examples if (e.domain, e.split) == (domain, split)]
        without = sum(not e.turns for e in chosen)
        rows.append({"domain": domain, "split": split, **summarize(chosen), "without_turns": without})
    return rows


def compared(inclusive: Sequence[Conversation], exclusive: Sequence[Conversation]) -> list[Json]:
    """Table II: the paper's figures and ours under both readings of a span's end, a row a domain and split."""
    rows: list[Json] = []
    for ours, other in zip(table(inclusive), table(exclusive), strict=True):
        row = {"domain": ours["domain"], "split": ours["split"]}
        paper = PAPER.get((row["domain"], row["split"]), [""] * len(COLUMNS))
        row |= {f"paper_{column}": figure for column, figure in zip(COLUMNS, paper, strict=True)}
        for name, figures in (("inclusive", ours), ("exclusive", other)):
            row |= {f"{name}_{column}": figures[column] for column in (*COLUMNS, "without_turns")}
        rows.append(row)
    return rows


def counts(examples: Sequence[Example]) -> list[Json]:
    """Examples, owners and groups of each split, a row each."""
    rows: list[Json] = []
    for split in SPLITS:
        chosen = [e for e in examples if e.split == split]
        owners, groups = {e.owner for e in chosen if e.owner}, {e.group for e in chosen}
        rows.append({"split": split, "examples": len(chosen), "owners": len(owners), "groups": len(groups)})
    return rows


def equal_texts(examples: Sequence[Example], of: Callable[[Any], str] = attrgetter("text")) -> dict[str, int]:
    """`val_in_train`, `test_in_train`, `test_in_val`: texts of a split that are, but for case and spaces, in another.

    A test text that is also a training text measures what a model has memorized. Empty texts do not count.
    """
    texts = {split: [normal(of(e)) for e in examples if e.split == split] for split in SPLITS}
    known = {split: set(own) - {""} for split, own in texts.items()}
    return {f"{b}_in_{a}": sum(map(known[a].__contains__, texts[b])) for a, b in combinations(SPLITS, 2)}


def equal_between(texts: Mapping[str, Sequence[str]]) -> int:
    """How many of the clients' texts are another client's, too; `texts`: by client, as `normal` returns them."""
    clients = Counter(chain.from_iterable(map(set, texts.values())))
    return sum(clients[text] > 1 for text in chain.from_iterable(texts.values()) if text)


def reference(example: object) -> str:
    """An example's summary or title; empty for kinds without one."""
    return str(getattr(example, "target", getattr(example, "title", "")))


def lost_letters(text: str) -> float:
    """The share of a text's letters that ROUGE does not read as `rouge_tokens: latin`: all but a to z.

    >>> lost_letters("Größe"), lost_letters("The board met."), lost_letters("2026")
    (0.4, 0.0, 0.0)
    """
    letters = [letter for letter in text if letter.isalpha()]
    return sum(not letter.isascii() for letter in letters) / max(1, len(letters))


def with_lost_letters(data: str, examples: Sequence[Example]) -> list[str]:
    """A line for each corpus of a data set in which ROUGE loses more than 2% of the letters of a reference."""
    references = [(getattr(one, "corpus", data), text) for one in examples if (text := reference(one))]
    lines = []
    for corpus in dict.fromkeys(corpus for corpus, _ in references):
        own = [text for name, text in references if name == corpus]
        if lost := sum(lost_letters(text) > LOST for text in own):
            what = f"over {LOST:.0%} of the letters in {lost} of {len(own)} references"
            lines.append(f"{corpus}: ROUGE by latin words loses {what}; rouge_tokens: unicode scores them")
    return lines
