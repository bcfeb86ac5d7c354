"""The resolved knobs of every training of every experiment at every scale."""

from __future__ import annotations

import gzip
import json
import re
from contextlib import chdir
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from pipeline.plan import schema, texts
from pipeline.plan.resolve import resolve
from pipeline.plan.text_resolve import resolve_texts

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("knobs.json.gz")
FOLDERS = (
    ".",
    "experiments/full",
    "experiments/ablations",
    "experiments/fednlp",
    "experiments/faults",
    "experiments/own",
)
SCALES = ("laptop", "full", "paper")
ON_TEXTS = ("fednlp", "faults", "own")
MACHINE = ("code", "packages", "device", "precision", "threads", "seed")
"""What depends on the machine or the version of the code, or is the run's own seed."""

Knobs = dict[str, dict[str, Any]]
"""Run -> the knobs of its training."""


def trainings(folder: str, scale: str) -> Knobs:
    """The trainings of one experiment's folder at a scale; empty where the folder has no such scale."""
    of_texts = folder.rpartition("/")[2] in ON_TEXTS
    return _at_scale(ROOT / folder, scale, of_texts)


def _at_scale(folder: Path, scale: str, of_texts: bool) -> Knobs:
    # In the folder itself: `extends` is relative to the file. A name of its own for each test process.
    with chdir(folder), NamedTemporaryFile(dir=".", prefix="golden-", suffix=".yaml") as temporary:
        text = Path("params.yaml").read_text(encoding="utf-8")
        if of_texts and not re.search(rf"^  {scale}:|scales: {{{scale}:", text, re.MULTILINE):
            return {}
        changed = Path(temporary.name).relative_to(Path.cwd())
        line = re.compile(r"^scale: \w+", re.MULTILINE)
        text = line.sub(f"scale: {scale}", text) if line.search(text) else f"scale: {scale}\n{text}"
        changed.write_text(re.sub(r"^precision: auto", "precision: fp32", text, flags=re.MULTILINE), encoding="utf-8")
        if of_texts:
            return _of_orders(resolve_texts(texts.read_text_params(changed)))
        return _of_orders(resolve(schema.read_params(changed).model_copy(update={"precision": "fp32"})))


def _of_orders(orders: dict[str, Any]) -> Knobs:
    """One row a run: seeds draw differently and have the same knobs."""
    found: Knobs = {}
    for path, order in orders.items():
        if not path.startswith("train/"):
            continue
        name = (
            re.sub(r"-\d+$", "", path.rpartition("/")[2].removesuffix(".json"))
            if "seeds" not in order
            else path.rpartition("/")[2].removesuffix(".json")
        )
        training = order["training"]
        knobs = None if training is None else {k: v for k, v in training.items() if k not in MACHINE}
        more = {k: order[k] for k in ("evaluate", "seeds", "untrained", "left_out", "dataset", "setting") if k in order}
        found[name] = {"training": knobs, **more}
    return found


def saved() -> dict[str, Knobs]:
    """`folder at scale` -> its trainings, as committed."""
    return dict(json.loads(gzip.decompress(FILE.read_bytes())))


def save() -> None:
    """Writes the knobs of today; the file says what changed."""
    found = {f"{folder} at {scale}": trainings(folder, scale) for folder in FOLDERS for scale in SCALES}
    content = json.dumps({where: own for where, own in found.items() if own}, sort_keys=True, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(content.encode(), mtime=0))
