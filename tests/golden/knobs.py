"""The resolved knobs of every training of every experiment at every scale."""

import gzip
import json
from contextlib import chdir
from pathlib import Path
from typing import Any

from pipeline.plan.reading import read_scales
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("knobs.json.gz")
MACHINE = ("code", "packages", "device", "precision", "threads", "seed")
"""What depends on the machine or the version of the code, or is the run's own seed."""

Knobs = dict[str, dict[str, Any]]
"""Run -> the knobs of its training."""


def folders() -> list[str]:
    """The folders with a params.yaml, from the root."""
    return [".", *sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("experiments/*/params.yaml"))]


def scales_of(folder: str) -> dict[str, dict[str, Any]]:
    """Scale -> the keys of a folder's params.yaml, filled in."""
    return read_scales(ROOT / folder / "params.yaml")[1]


def trainings(folder: str, scale: str) -> Knobs:
    """The trainings of one experiment's folder at a scale."""
    with chdir(ROOT / folder):
        orders = resolve(Params.model_validate(scales_of(folder)[scale] | {"precision": "fp32"}))
    found: Knobs = {}
    for path, order in orders.items():
        if path.startswith("train/"):
            more = {k: order[k] for k in ("setting", "seeds", "evaluate", "evaluated", "left_out") if k in order}
            found[Path(path).stem] = {"training": _portable(order["training"]), **more}
    return found


def _portable(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _portable(own) for key, own in value.items() if key not in MACHINE}


def saved() -> dict[str, Knobs]:
    """`folder at scale` -> its trainings, as committed."""
    return dict(json.loads(gzip.decompress(FILE.read_bytes())))


def save() -> None:
    """Write the knobs of today; the file says what changed."""
    found = {f"{folder} at {scale}": trainings(folder, scale) for folder in folders() for scale in scales_of(folder)}
    content = json.dumps(found, sort_keys=True, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(content.encode(), mtime=0))
