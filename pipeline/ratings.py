"""Human evaluation (Fig. 5), as a kit: blind pairwise sheets out, ratings in.

Feng et al., Section V-A2: 20 meetings a domain; AdaFedSelectKD's summary against that of AdaCentralized, AdaFedAvg and
AdaFedKD, in random order; a rater says which is better, or that neither is, by domain expertise, informativeness and
factual correctness. A sheet is one HTML page that works from disk, and the same as CSV; which side is whose stays in a
key beside the ratings, which hold no word of the corpus.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline import layout
from pipeline.corpora.example import Example
from pipeline.corpora.prepared import examples_of
from pipeline.encoded import read_encoded
from pipeline.errors import QuorumError
from pipeline.evaluation.agreement import Outcome
from pipeline.evaluation.paper_scores import OURS
from pipeline.figures.rating_sheet import render
from pipeline.files import read_json, read_jsonl, sha256_json, write_json, write_text
from pipeline.partitions.manifest import hash_order
from pipeline.progress import say
from pipeline.spec import MainSpec, RunRow, read_spec
from pipeline.tables import read_table, write_table

OTHERS = ("AdaCentralized", "AdaFedAvg", "AdaFedKD")
CRITERIA = ("domain expertise", "informativeness", "factual correctness")
CHOICES = ("A", "B", "tie")
EXAMPLES = 20
COLUMNS = ("sheet", "rater", "item", "client", "meeting", "example", "against", "texts", "criterion", "outcome")


@dataclass(frozen=True)
class Item:
    """One comparison as a rater sees it; `key` tells whose summary is on which side, and is not part of the sheet."""

    item: str
    client: str
    query: str
    transcript: list[str]
    a: str
    b: str
    key: dict[str, str]


def spread(entries: Mapping[str, str], count: int, seed: int) -> list[str]:
    """`count` examples, as evenly over meetings as they come.

    Args:
        entries: example -> meeting.
    """
    meetings: dict[str, list[str]] = {}
    for identity in hash_order(list(entries), salt=f"{seed}/"):
        meetings.setdefault(entries[identity], []).append(identity)
    chosen: list[str] = []
    while len(chosen) < min(count, len(entries)):
        for own in meetings.values():
            if own and len(chosen) < count:
                chosen.append(own.pop(0))
    return chosen


def export(raters: int, seed: int, folder: Path) -> list[Path]:
    """Write a sheet a rater: `rater-N.html` and `rater-N.csv`, and its key into data/ratings/keys.

    Raises:
        QuorumError: one of the four methods is not in the main table, or was not run.
    """
    runs = _runs(read_spec(layout.stage_spec("main"), MainSpec).runs)
    missing = [method for method in (OURS, *OTHERS) if method not in runs]
    if missing:
        raise QuorumError(f"ratings: no run of {missing[0]} in params.yaml's runs; add one and run `dvc repro main`")
    summaries = _summaries(runs)
    examples = examples_of(layout.MAIN)
    index = read_encoded(runs[OURS].id).index["clients"]
    chosen = {
        client: spread({e["id"]: e["meeting"] for e in splits["test"]}, EXAMPLES, seed)
        for client, splits in index.items()
    }
    sheets = {rater: items_for(rater, seed, chosen, examples, summaries) for rater in range(1, raters + 1)}
    say(f"ratings: {raters} sheets of {len(sheets[1])} pairs in {folder}; give each rater one page")
    return [path for rater, items in sheets.items() for path in _write_sheet(items, rater, seed, folder)]


def items_for(
    rater: int,
    seed: int,
    chosen: Mapping[str, Sequence[str]],
    examples: Mapping[str, Example],
    summaries: Mapping[str, Mapping[str, str]],
) -> list[Item]:
    """One rater's pairs, each with its sides and all of them in an order drawn for this rater.

    Args:
        chosen: client -> test examples.
        summaries: method -> example -> its summary.
    """
    shuffled = random.Random(f"{seed}/{rater}")
    items = []
    for client, identity, other in ((c, i, o) for c, ids in chosen.items() for i in ids for o in OTHERS):
        sides = [OURS, other]
        shuffled.shuffle(sides)
        texts = [summaries[method][identity] for method in sides]
        key = {"example": identity, "client": client, "meeting": examples[identity].meeting}
        key |= {"A": sides[0], "B": sides[1], "texts": _texts(*texts)}
        # By the texts: a sheet of other summaries must not be taken for this one.
        name = sha256_json([seed, identity, other, key["texts"]])[:12]
        lines = [f"{turn.speaker}: {turn.text}" for turn in examples[identity].turns]
        items.append(Item(name, client, examples[identity].query, lines, texts[0], texts[1], key))
    shuffled.shuffle(items)
    return items


def _runs(rows: Sequence[RunRow]) -> dict[str, RunRow]:
    """The main table's run, at the first seed, of each of the four methods that it has."""
    found: dict[str, RunRow] = {}
    for row in rows:
        if layout.group_of(row.id) == layout.MAIN:
            found.setdefault(row.kind, row)
    return {method: found[method] for method in (OURS, *OTHERS) if method in found}


def _summaries(runs: Mapping[str, RunRow]) -> dict[str, dict[str, str]]:
    """Method -> test example -> its summary."""
    return {
        method: {line["id"]: line["prediction"] for line in read_jsonl(layout.predictions(row.id))}
        for method, row in runs.items()
    }


def _texts(one: str, other: str) -> str:
    """A name for two summaries, on whichever side they are."""
    return sha256_json(sorted([one, other]))[:12]


def of_these_summaries(rows: Sequence[RunRow]) -> list[dict[str, str]]:
    """The ratings of the main table's summaries as they are now; those of former ones are kept in the file and told of.

    Args:
        rows: all runs.
    """
    path = layout.ratings_table()
    if not path.is_file():
        return []
    summaries, rated = _summaries(_runs(rows)), read_table(path)

    def now(rating: Mapping[str, str]) -> str | None:
        pair = [summaries.get(method, {}).get(rating["example"]) for method in (OURS, rating["against"])]
        return None if pair[0] is None or pair[1] is None else _texts(pair[0], pair[1])

    current = [rating for rating in rated if rating["texts"] == now(rating)]
    if len(current) < len(rated):
        say(f"ratings: {len(rated) - len(current)} of {len(rated)} are of summaries that have changed; left out")
    return current


def _write_sheet(items: Sequence[Item], rater: int, seed: int, folder: Path) -> list[Path]:
    sheet = sha256_json([seed, rater, [(item.item, item.key) for item in items]])[:12]
    write_json(layout.rating_key(sheet), {item.item: item.key for item in items})
    shown = [{k: v for k, v in asdict(item).items() if k != "key"} for item in items]
    page, table = folder / f"rater-{rater}.html", folder / f"rater-{rater}.csv"
    write_text(page, render(sheet, shown, CRITERIA))
    texts = {item.item: {"transcript": "\n".join(item.transcript), "A": item.a, "B": item.b} for item in items}
    unrated = dict.fromkeys(CRITERIA, "")
    rows = [
        {"sheet": sheet, "item": i.item, "client": i.client, "query": i.query} | texts[i.item] | unrated for i in items
    ]
    write_table(table, rows)
    return [page, table]


def bring_in(files: Sequence[Path]) -> int:
    """Check raters' files (JSON from the page, or the filled CSV) and join them into data/ratings/ratings.csv.

    A sheet that is there already is replaced: it is one rater's, under whatever name. Returns how many ratings there
    are now.

    Raises:
        QuorumError: a file is no such sheet, names an unknown item or choice, or rates a pair twice; or its rater has
            rated the pairs on another sheet.
    """
    path = layout.ratings_table()
    kept = read_table(path) if path.is_file() else []
    for file in files:
        rows = _read(file)
        sheets = {row["sheet"] for row in rows}
        kept = [row for row in kept if row["sheet"] not in sheets]
        _check_rater(rows, kept, file)
        kept += rows
    write_table(path, kept, COLUMNS)
    raters = len({row["rater"] for row in kept})
    say(f"ratings: {len(kept)} ratings by {raters} raters in {path}; `dvc repro report` draws them")
    return len(kept)


def _check_rater(rows: Sequence[Mapping[str, str]], others: Sequence[Mapping[str, str]], file: Path) -> None:
    """All sheets have the same pairs: one person's word on two of them would count as two raters'."""
    rated = {(row["rater"], row["item"]) for row in others}
    again = next((row for row in rows if (row["rater"], row["item"]) in rated), None)
    if again is not None:
        raise QuorumError(
            f"{file}: {again['rater']} has rated item {again['item']} on another sheet; keep one sheet a rater, or "
            "enter another name if it is another person"
        )


def _read(file: Path) -> list[dict[str, str]]:
    answers = _answers_of_csv(file) if file.suffix == ".csv" else _answers_of_json(file)
    rows: list[dict[str, str]] = []
    seen: set[tuple[str, str]] = set()
    for sheet, rater, item, criterion, choice in answers:
        keys = _key(sheet, file)
        if item not in keys:
            raise QuorumError(f"{file}: item {item!r} is not on sheet {sheet}; import the file as the page exported it")
        if criterion not in CRITERIA or choice not in CHOICES:
            raise QuorumError(f"{file}: item {item}: {criterion!r} = {choice!r}; choices are {', '.join(CHOICES)}")
        if (item, criterion) in seen:
            raise QuorumError(f"{file}: item {item} is rated twice on {criterion}; keep one")
        seen.add((item, criterion))
        key = keys[item]
        against = key["B"] if key["A"] == OURS else key["A"]
        outcome: Outcome = "tie" if choice == "tie" else "win" if key[choice] == OURS else "loss"
        subject = {name: key[name] for name in ("client", "meeting", "example", "texts")}
        row = {"sheet": sheet, "rater": rater, "item": item, "against": against, "outcome": outcome} | subject
        rows.append(row | {"criterion": criterion})
    if not rows:
        raise QuorumError(f"{file}: holds no rating; rate at least one pair")
    return rows


def _key(sheet: str, file: Path) -> dict[str, dict[str, str]]:
    path = layout.rating_key(sheet)
    if not sheet.isalnum() or not path.is_file():
        raise QuorumError(f"{file}: sheet {sheet!r} has no key in {path.parent}; import it where it was exported")
    keys: dict[str, dict[str, str]] = read_json(path)
    return keys


Answers = Iterable[tuple[str, str, str, str, str]]
"""(sheet, rater, item, criterion, choice)."""


def _answers_of_json(file: Path) -> Answers:
    try:
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        sheet, rater = str(data["sheet"]), str(data["rater"]).strip()
        if not rater:
            raise QuorumError(
                f"{file}: names no rater, and two of these would count as two; enter a name and export again"
            )
        return [
            (sheet, rater, str(item), str(criterion), str(choice))
            for item, given in data["answers"].items()
            for criterion, choice in given.items()
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise QuorumError(f"{file}: not ratings as the page exports them ({error!r}); export again") from None


def _answers_of_csv(file: Path) -> Answers:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            return [
                (row["sheet"], file.stem, row["item"], criterion, row[criterion].strip())
                for row in csv.DictReader(stream)
                for criterion in CRITERIA
                if row[criterion].strip()
            ]
    except (OSError, UnicodeDecodeError, KeyError, csv.Error, AttributeError) as error:
        raise QuorumError(f"{file}: not a filled sheet ({error!r}); keep its columns as they are") from None
