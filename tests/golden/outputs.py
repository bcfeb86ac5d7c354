"""Hashes of what a workspace's tiny pipeline has computed."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from pipeline.model.adapter import digest, read_adapter
from pipeline.runs.result_files import read_result

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
    """What was computed -> its hash: adapters as tensors; files by column, whatever stands in the others."""
    found: Hashes = {}
    for path in sorted((workspace / "models").rglob("adapters/*.safetensors")):
        found[f"adapter {_run(path.parents[1])} {path.stem}"] = digest(read_adapter(path))[:16]
    for path in sorted((workspace / "models").rglob("history.csv")):
        found |= {f"history {_run(path.parent)} {k}": v for k, v in _columns(_table(path), HISTORY).items()}
    for path in sorted((workspace / "reports/predictions").rglob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found |= {f"prediction {path.stem} {k}": v for k, v in _columns(rows, ("id", "client", "prediction")).items()}
    by_run = {
        path.name.split(".json")[0]: read_result(path)["scores"] for path in workspace.glob("results/*/*.json.gz")
    }
    for path in sorted((workspace / "reports/scores").rglob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        by_run |= {f"{path.stem}-{seed}": own for seed, own in content.items()}
    for run, own in sorted(by_run.items()):
        found |= {f"scores {run} {k}": v for k, v in _columns(own["examples"]).items() if k != "meeting"}
    return found


def table_of(path: Path) -> Hashes:
    """Column -> hash."""
    return {f"table {path.stem} {k}": v for k, v in _columns(_table(path)).items()}


def _run(folder: Path) -> str:
    """`fedavg-1` of models/main/fedavg-1, and of models/texts/fedavg/1."""
    return f"{folder.parent.name}-{folder.name}" if folder.name.isdigit() else folder.name


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _columns(rows: Iterable[dict[str, Any]], wanted: Iterable[str] = ()) -> Hashes:
    rows = list(rows)
    names = [name for name in (wanted or dict.fromkeys(n for row in rows for n in row)) if any(name in r for r in rows)]
    return {name: _hash([row.get(name) for row in rows]) for name in names}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()[:16]


def saved() -> dict[str, dict[str, Hashes]]:
    """Processor -> pipeline -> hashes."""
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.is_file() else {}


def save(found: dict[str, Hashes]) -> None:
    known = saved() | {processor(): found}
    FILE.write_text(json.dumps(known, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
