"""Hashes of what a workspace's tiny pipeline has computed."""

import csv
import hashlib
import json
import re
from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path
from typing import Any

import torch

from pipeline.model.adapter import digest, read_adapter
from pipeline.runs.result_files import read_result
from pipeline.workspace import layout
from pipeline.workspace.files import read_jsonl

FILE = Path(__file__).with_name("outputs.json")
HISTORY = (
    *("round", "client", "train_loss", "validation_loss", "local_validation_loss", "server_validation_loss"),
    *("steps", "bytes_down", "bytes_up", "best", "share_distilled", "teacher_entropy"),
)
"""The columns of a history that no refactoring changes; others may come."""

Hashes = dict[str, str]


def processor() -> str:
    """The kind of processor: with another one, sums are rounded in another order."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.is_file() else ""
    vendor, family = (re.search(rf"^{name}\s*: (.+)$", text, re.MULTILINE) for name in ("vendor_id", "cpu family"))
    named = " ".join(found[1] for found in (vendor, family) if found)
    return f"{named} {torch.backends.cpu.get_cpu_capability()}".strip()


def outputs_of(workspace: Path) -> Hashes:
    """What was computed -> its hash: adapters as tensors, files by column."""
    found: Hashes = {}
    with chdir(workspace):
        for path in sorted(layout.MODELS.glob("*/*/adapters/*.safetensors")):
            found[f"adapter {_run(path.parents[1])} {path.stem}"] = digest(read_adapter(path))[:16]
        for path in sorted(layout.MODELS.glob("*/*/history.csv")):
            rows: list[dict[str, Any]] = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
            found |= {f"history {_run(path.parent)} {k}": v for k, v in _columns(rows, HISTORY).items()}
        for path in sorted(layout.PREDICTIONS.glob("*/*.jsonl")):
            rows = read_jsonl(path)
            columns = _columns(rows, ("id", "client", "prediction"))
            found |= {f"prediction {_run(path.with_suffix(''))} {k}": v for k, v in columns.items()}
        for path in sorted(layout.RESULTS.glob("*.json.gz")):
            name = path.name.removesuffix(".json.gz")
            for seed, own in read_result(name).items():
                found |= {f"scores {name}-{seed} {k}": v for k, v in _columns(own["scores"]["examples"]).items()}
    return found


def _run(folder: Path) -> str:
    """`fedavg-1` of models/fedavg/1."""
    return f"{folder.parent.name}-{folder.name}"


def _columns(rows: list[dict[str, Any]], wanted: Iterable[str] = ()) -> Hashes:
    names = [name for name in (wanted or dict.fromkeys(n for row in rows for n in row)) if any(name in r for r in rows)]
    return {name: _hash([row.get(name) for row in rows]) for name in names}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()[:16]


def saved() -> dict[str, dict[str, Hashes]]:
    """Processor -> pipeline -> hashes."""
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.is_file() else {}


def save(found: dict[str, Hashes]) -> None:
    """Write the hashes of this kind of processor."""
    known = saved() | {processor(): found}
    FILE.write_text(json.dumps(known, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
