"""Human evaluation (Fig. 5; Feng et al., Section V-A2): blind rating sheets out, ratings in.

A rater compares AdaFedSelectKD's summary with another method's, in random order, and chooses the better one or a tie
by each criterion. A sheet is an HTML page that works from disk, and the same as CSV. A separate key names the methods
behind A and B. Keys and ratings are in results/ and quote no text.
"""

import csv
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, StringConstraints, ValidationError

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import examples_of
from pipeline.corpora.hash_order import hash_order
from pipeline.errors import QuorumError
from pipeline.federated.methods import OURS
from pipeline.plan.orders import RunRow, planned_runs
from pipeline.report.page import COMMAND, page
from pipeline.runs.result_files import Result, text_hash
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, sha256_json, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.record import first_problem
from pipeline.workspace.tables import read_table, write_table

METHODS = (OURS, "AdaCentralized", "AdaFedAvg", "AdaFedKD")
EXAMPLES = 20  # of each client
Criterion = Literal["domain expertise", "informativeness", "factual correctness"]
CRITERIA: tuple[str, ...] = get_args(Criterion)
COLUMNS = ("sheet", "rater", "item", "client", "meeting", "example", "against", "texts", "criterion", "outcome")


def export(raters: int, seed: int) -> None:
    """Write sheets `rater-N.html` and `rater-N.csv` into reports/ratings, and their keys into results/ratings.

    Raises QuorumError if params.yaml has no run of one of the four methods.
    """
    compared = _compared(planned_runs())
    lines = {method: read_jsonl(layout.predictions(row.id)) for method, row in compared.items()}
    known = {m: {(o["client"], o["id"]): o["prediction"] for o in own if o["prediction"]} for m, own in lines.items()}
    pairs = _pairs(known)
    if missing := [method for method in METHODS if not any(method in pair for pair in pairs.values())]:
        raise QuorumError(f"ratings: no run of {missing[0]} in params.yaml's runs; add one and run `dvc repro`")
    examples = examples_of(compared[OURS].data, Conversation)
    drawn: set[str] = set()
    for client in {client for client, _, _ in pairs}:
        drawn |= set(draw({name: examples[name].meeting for own, name, _ in pairs if own == client}, EXAMPLES, seed))
    pairs = {about: pair for about, pair in pairs.items() if about[1] in drawn}
    for rater in range(1, raters + 1):
        shuffled, items, keys = random.Random(f"{seed}/{rater}"), [], {}
        for (client, name, other), pair in pairs.items():
            sides, example = dict(zip("AB", shuffled.sample([OURS, other], 2), strict=True)), examples[name]
            texts = _hash_of({method: text_hash(text) for method, text in pair.items()})
            key = {"client": client, "meeting": example.meeting, "example": name, "texts": texts}
            # A letter comes first: spreadsheets take a hash like 12e45678 for a number.
            item = "i" + sha256_json(key | {"other": other})[:11]
            keys[item] = key | sides
            transcript = "\n".join(f"{turn.speaker}: {turn.text}" for turn in example.turns)
            shown = {"item": item, "client": client, "query": example.query, "transcript": transcript}
            items.append(shown | {side: pair[method] for side, method in sides.items()})
        shuffled.shuffle(items)
        sheet, path = "s" + sha256_json([rater, seed, keys])[:11], layout.RATING_SHEETS / f"rater-{rater}"
        write_json(layout.rating_key(sheet), keys)
        write_text(path.with_suffix(".html"), page("rating_sheet.html.j2", sheet=sheet, criteria=CRITERIA, items=items))
        rows = [{"sheet": sheet, **shown, **dict.fromkeys(CRITERIA, "")} for shown in items]
        write_table(path.with_suffix(".csv"), rows)
    say(f"ratings: {raters} sheets of {len(items)} pairs in {layout.RATING_SHEETS}; give each rater one page")


def draw(meetings: Mapping[str, str], count: int, seed: int) -> list[str]:
    """Draw up to `count` examples, one of each meeting in turn; `meetings` is example -> meeting."""
    examples: dict[str, list[str]] = {}
    for name in hash_order(list(meetings), salt=f"{seed}/"):
        examples.setdefault(meetings[name], []).append(name)
    return [name for turn in zip_longest(*examples.values()) for name in turn if name is not None][:count]


def import_ratings(files: Sequence[Path]) -> None:
    """Check filled sheets and join them into results/ratings.csv, where they replace former ratings of the sheets.

    Raises QuorumError if a file is not a filled sheet, a sheet has two raters, or a rater has rated a pair twice.
    """
    path = layout.ratings_table()
    former = read_table(path) if path.is_file() else []
    new = [row for file in files for row in _read(file)]
    sheets = {row["sheet"] for row in new}
    ratings = [row for row in former if row["sheet"] not in sheets] + new
    rated = Counter((row["rater"], row["item"], row["criterion"]) for row in ratings)
    if again := [one for one, times in rated.items() if times > 1]:
        raise QuorumError(f"ratings: {again[0][0]} has rated item {again[0][1]} twice; import one sheet for each rater")
    raters = {(row["sheet"], row["rater"]) for row in ratings}
    if shared := [sheet for sheet, times in Counter(sheet for sheet, _ in raters).items() if times > 1]:
        raise QuorumError(f"ratings: sheet {shared[0]} has two raters; import the file of one of them")
    write_table(path, ratings, COLUMNS)
    if replaced := sorted({row["rater"] for row in former if row["sheet"] in sheets}):
        say(f"ratings: replaced those of {', '.join(replaced)} on the same sheets")
    say(f"ratings: {len(ratings)} ratings of {len(raters)} sheets in {path}; `{COMMAND}` draws them")


class FilledSheet(BaseModel):
    """A rater's answers as the page exports them: item -> criterion -> choice."""

    sheet: Annotated[str, StringConstraints(strip_whitespace=True, pattern="^[a-z0-9]+$")]
    rater: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    answers: dict[str, dict[Criterion, Literal["A", "B", "tie"]]]


def _read(file: Path) -> list[dict[str, str]]:
    """The ratings of a filled sheet, JSON from the page or CSV, joined with its key."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        is_csv = file.suffix.lower() == ".csv"
        filled = _of_csv(text, file.stem) if is_csv else [FilledSheet.model_validate_json(text)]
    except (ValueError, KeyError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else repr(error)
        raise QuorumError(f"{file}: is not a filled sheet ({problem}); correct it, or export it again") from None
    rows = []
    for sheet, item, choices in [(one, *answer) for one in filled for answer in one.answers.items()]:
        path = layout.rating_key(sheet.sheet)
        key = read_json(path).get(item) if path.is_file() else None
        if key is None:
            raise QuorumError(f"{file}: item {item!r} has no key in {path}; import the sheet where it was exported")
        against = key["B"] if key["A"] == OURS else key["A"]
        for criterion, choice in choices.items():
            outcome = "tie" if choice == "tie" else "win" if key[choice] == OURS else "loss"
            rating = {"sheet": sheet.sheet, "rater": sheet.rater, "item": item, "criterion": criterion}
            rows.append(key | rating | {"against": against, "outcome": outcome})
    if not rows:
        raise QuorumError(f"{file}: has no ratings; rate at least one pair")
    return rows


def _of_csv(text: str, rater: str) -> list[FilledSheet]:
    """The rated rows of a table, each as a sheet; its rater is the file's name."""
    csv.field_size_limit(10**9)  # a transcript is one cell
    separator = ";" if ";" in text.partition("\n")[0] else ","  # as spreadsheets of many countries write
    filled = []
    for row in csv.DictReader(text.splitlines(keepends=True), restval="", delimiter=separator):
        if choices := {criterion: choice for criterion in CRITERIA if (choice := row[criterion].strip())}:
            content = {"sheet": row["sheet"], "rater": rater, "answers": {row["item"].strip(): choices}}
            filled.append(FilledSheet.model_validate(content))
    return filled


def current_ratings(runs: Sequence[RunRow], files: Mapping[str, Result]) -> list[dict[str, str]]:
    """The ratings of these runs' summaries; those of summaries that have changed are left out, and reported.

    `files`: run at a seed -> its result.
    """
    path = layout.ratings_table()
    if not path.is_file():
        return []
    rows = {method: row for method, row in _compared(runs).items() if row.id in files}
    scored = {method: files[row.id]["scores"]["examples"] for method, row in rows.items()}
    hashes = {m: {(o["client"], o["id"]): o["text"] for o in own if "text" in o} for m, own in scored.items()}
    ratings, pairs = read_table(path), _pairs(hashes)
    now = {(name, other, _hash_of(pair)) for (_, name, other), pair in pairs.items()}
    current = [row for row in ratings if (row["example"], row["against"], row["texts"]) in now]
    if len(current) < len(ratings):
        say(f"ratings: {len(ratings) - len(current)} of {len(ratings)} are of summaries that have changed; left out")
    return current


def _compared(runs: Sequence[RunRow]) -> dict[str, RunRow]:
    """Method -> its first run at its first seed, in the setting of the first run of ours; left out are no runs."""
    made = [row for row in runs if not row.left_out]
    setting = next((row.setting for row in made if row.part == OURS), "")
    return {row.part: row for row in reversed(made) if row.part in METHODS and row.setting == setting}


def _pairs(texts: Mapping[str, Mapping[tuple[str, str], str]]) -> dict[tuple[str, str, str], dict[str, str]]:
    """(Client, test example, other method) -> method -> its summary, or a hash of it.

    `texts`: method -> (client, example) -> its summary, or a hash of it.
    """
    both = [(key, other) for key in texts.get(OURS, {}) for other in METHODS[1:] if key in texts.get(other, {})]
    return {(*key, other): {method: texts[method][key] for method in (OURS, other)} for key, other in both}


def _hash_of(pair: Mapping[str, str]) -> str:
    """A hash of two summaries, in either order."""
    return sha256_json(sorted(pair.values()))[:12]
