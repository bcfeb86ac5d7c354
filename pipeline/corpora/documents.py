"""A document in units (sentences, turns), and the units of its extract: published ones, or greedy labels.

FedSum's sets have an extract of their own (BBC, SciTLDR), or the greedy one of its preprocessing (AllenMa97/FedSum
@ 503e3bc, data_builder.py 176-212): units are added while the sum of their F1 of 1- and 2-grams rises.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.corpora.example import CLOSED, SPLITS, Split
from pipeline.corpora.hash_order import tenths
from pipeline.corpora.people_files import text_of
from pipeline.errors import QuorumError
from pipeline.workspace.progress import say

LONGEST = 200  # a unit ends after so many words
USUAL = 3  # the units of an extract, where a data set does not say how many
_END = re.compile(r"""(?<=[.!?])(["'”’)]*)\s+(?=["'“‘(£$]?[A-Z0-9])""")
_LATIN, _ANY = re.compile(r"[^a-z0-9\s]"), re.compile(r"[^\w\s]")


@dataclass(frozen=True)
class Document:
    """See `Example`.

    Attributes:
        units: sentences or turns, in order; an extract is some of them.
        labels: 1 for each unit of the extract, else 0; empty where none is published.
        references: summaries, a sentence a line; none of a new text.
        length: how many units a prediction has; below 1, their share.

    Raises ValueError for a document without units, labels that do not fit them, and an empty summary.
    """

    __pydantic_config__ = CLOSED

    id: str
    split: Split
    owner: str
    group: str
    units: tuple[str, ...]
    labels: tuple[int, ...]
    references: tuple[str, ...]
    length: float = USUAL

    def __post_init__(self) -> None:
        if not self.units:
            raise ValueError(f"{self.id}: has no sentence; write some, or leave it out")
        if self.labels and (len(self.labels) != len(self.units) or {*self.labels} - {0, 1}):
            wrong = f"{len(self.labels)} labels of {len(self.units)} units"
            raise ValueError(f"{self.id}: {wrong}; give each unit 0 or 1, or none a label")
        if not all(reference.strip() for reference in self.references):
            raise ValueError(f"{self.id}: has an empty summary; write one, or leave it out")

    @property
    def label(self) -> str:
        """The owner: an extract is no class."""
        return self.owner

    @property
    def text(self) -> str:
        return "\n".join(self.units)

    def count(self, units: int) -> int:
        """How many of so many units a prediction has: at least one, a share rounded half up."""
        return max(1, int(self.length * units + 0.5) if self.length < 1 else int(self.length))

    def labels_of(self, units: int) -> tuple[int, ...]:
        """The labels of the first units, which are all that is read: published, or else greedy among these."""
        if self.labels or not self.references:
            return self.labels[:units] or (0,) * units
        return greedy_labels(self.units[:units], self.references[0], self.count(units))


def cut(unit: str) -> str:
    """The unit's first words."""
    return " ".join(unit.split()[:LONGEST])


def sentences(text: str) -> list[str]:
    """The sentences of each line: one ends at `.`, `!` or `?`, closing quotes, and spaces before a capital or a digit.

    >>> sentences('It rose 2.5%. "We are pleased." He left.')
    ['It rose 2.5%.', '"We are pleased."', 'He left.']
    """
    lines = (_END.sub("\\1\n", line.strip()) for line in text.splitlines())
    return [unit for line in lines for unit in line.split("\n") if unit]


def own_documents(folder: Path) -> list[Document]:
    """A user's texts, `texts/**/*.txt`, each with a summary of the same name in `summaries/`; a subfolder is an owner.

    A shuffle takes a tenth of the texts, at least one, for test and for validation each. Equal texts stay together.

    Raises QuorumError if there are fewer than three texts, a summary is missing, or a text or a summary is empty.
    """
    texts, summaries = folder / "texts", folder / "summaries"
    if not texts.is_dir():
        raise QuorumError(f"{texts}: is missing; lay texts (*.txt) there")
    paths = {path.relative_to(texts).with_suffix("").as_posix(): path for path in _texts_of(texts)}
    if len(paths) < len(SPLITS):
        raise QuorumError(f"{texts}: holds {len(paths)} texts (*.txt); lay at least three there")
    alone = [path for path in _texts_of(summaries) if not (texts / path.relative_to(summaries)).is_file()]
    if alone:
        say(f"{alone[0]}: is a summary without a text, as are {len(alone) - 1} more; they are left out")
    written = {name: text_of(path) for name, path in paths.items()}
    splits, found = tenths([*paths], written.items()), []
    for name, path in paths.items():
        place = summaries / path.relative_to(texts)
        if not place.is_file():
            raise QuorumError(f"{place}: is missing; write the summary of {path} there")
        summary, owner = text_of(place), name.rpartition("/")[0].replace("/", "-")
        if not _has_word(summary):
            raise QuorumError(f"{place}: has no word; write the summary of {path} there")
        units, references = units_of(written[name]), ("\n".join(sentences(summary)),)
        try:
            found.append(Document(f"{folder.name}/{name}", splits[name], owner, name, units, (), references))
        except ValueError as error:
            raise QuorumError(f"{path}: {error}") from None
    return found


def units_of(text: str) -> tuple[str, ...]:
    """The units of a user's text: its sentences that have a letter or a digit, cut."""
    return tuple(cut(unit) for unit in sentences(text) if _has_word(unit))


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _texts_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".txt")


def greedy_labels(units: Sequence[str], reference: str, most: int) -> tuple[int, ...]:
    """The units that are added one by one to raise F1 of 1-grams + F1 of 2-grams with the reference; the first of ties.

    N-grams are sets, and those of a unit do not reach into the next one. It stops where no unit raises the sum, or at
    `most` units.
    """
    wanted = _ngrams(reference)
    own = [_ngrams(unit) for unit in units]
    chosen: set[int] = set()
    found: tuple[set[tuple[str, ...]], ...] = (set(), set())
    best = 0.0
    for _ in range(most):
        scores = {i: _sum_f1(found, own[i], wanted) for i in range(len(units)) if i not in chosen}
        top = max(scores, key=lambda i: (scores[i], -i), default=None)
        if top is None or scores[top] <= best:
            break
        best = scores[top]
        chosen.add(top)
        found = tuple(old | new for old, new in zip(found, own[top], strict=True))
    return tuple(int(i in chosen) for i in range(len(units)))


def _ngrams(text: str) -> tuple[set[tuple[str, ...]], ...]:
    """The sets of a text's 1- and 2-grams, in lower case, of a to z and digits; without these, of any script's letters.

    A line ends a word.
    """
    words = _LATIN.sub("", text.lower()).split() or _ANY.sub("", text.lower()).split()
    return tuple({tuple(words[i : i + n]) for i in range(len(words) - n + 1)} for n in (1, 2))


def _sum_f1(
    found: Sequence[set[tuple[str, ...]]], added: Sequence[set[tuple[str, ...]]], wanted: Sequence[set[tuple[str, ...]]]
) -> float:
    total = 0.0
    for old, new, reference in zip(found, added, wanted, strict=True):
        union = old | new
        right = len(union & reference)
        precision, recall = right / max(1, len(union)), right / max(1, len(reference))
        total += 2 * precision * recall / (precision + recall + 1e-8)
    return total
