"""Human evaluation (Fig. 5), as a kit: blind pairwise sheets out.

Feng et al., Section V-A2: 20 meetings a domain; AdaFedSelectKD's summary against that of AdaCentralized, AdaFedAvg and
AdaFedKD, in random order; a rater says which is better, or that neither is, by domain expertise, informativeness and
factual correctness. A sheet is one HTML page that works from disk, and the same as CSV; which side is whose stays in a
key beside the ratings, which hold no word of the corpus.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipeline.corpora.example import Example
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.prepared import examples_of
from pipeline.errors import QuorumError
from pipeline.federated.methods import OURS
from pipeline.plan.orders import EncodeOrder, MainOrder, RunRow, read_order
from pipeline.report.page import page as render_page
from pipeline.runs.index import read_encoded
from pipeline.workspace import layout
from pipeline.workspace.files import read_jsonl, sha256_json, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table

OTHERS = ("AdaCentralized", "AdaFedAvg", "AdaFedKD")
CRITERIA = ("domain expertise", "informativeness", "factual correctness")
EXAMPLES = 20


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
    runs = _runs(read_order(layout.order("main"), MainOrder).runs)
    missing = [method for method in (OURS, *OTHERS) if method not in runs]
    if missing:
        raise QuorumError(f"ratings: no run of {missing[0]} in params.yaml's runs; add one and run `dvc repro main`")
    summaries = _summaries(runs)
    examples = examples_of(read_order(layout.order("encode", layout.MAIN), EncodeOrder).corpora)
    index = read_encoded(runs[OURS].id).index["clients"]
    chosen = {
        client: spread({e["id"]: e["meeting"] for e in splits["test"]}, EXAMPLES, seed)
        for client, splits in index.items()
    }
    sheets = {rater: items_for(rater, seed, chosen, examples, summaries) for rater in range(1, raters + 1)}
    say(f"ratings: {raters} sheets of {len(sheets[1])} pairs in {folder}; give each rater one page")
    return [path for rater, items in sheets.items() for path in write_sheet(items, rater, seed, folder)]


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
            found.setdefault(row.part, row)
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
    """The ratings of the main table's summaries as they are now; former ones stay in the file, and are told of."""
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


def write_sheet(items: Sequence[Item], rater: int, seed: int, folder: Path) -> list[Path]:
    """One rater's page and table into `folder`, and their key: [page, table]."""
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


def render(sheet: str, items: Sequence[Mapping[str, Any]], criteria: Sequence[str]) -> str:
    """A rater's page: one file that works from disk, saves as it goes, and exports what was rated as JSON.

    `items`: as `Item` without its key.
    """
    # Inside a script, the only text that could end it early is a tag's beginning.
    content = json.dumps({"sheet": sheet, "criteria": criteria, "items": items}, ensure_ascii=False)
    return render_page(
        "rating_sheet.html.j2", sheet=sheet, count=len(items), content=Markup(content.replace("<", "\\u003c"))
    )
