"""How long each part of `make repro` took when it last ran here -> reports/benchmarks/parts.json.

`python -m benchmarks.parts --total MINUTES`, after `make repro` in an empty clone, with the time of the whole command.
`before` stays as it is: the parts of an earlier scale.
"""

import argparse
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.__main__ import OUT, machine
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json

FILE = OUT / "parts.json"


def ended(pattern: str) -> float:
    """When the last of some files was written, in seconds since 1970."""
    return max(path.stat().st_mtime for path in Path().glob(pattern))


def parts(total: float) -> dict[str, float]:
    """Part -> minutes, to a tenth, by when each stage's last output was written; `other` is set-up, data and pages.

    Args:
        total: minutes of the whole command.
    """
    encoded = ended("data/encoded/domains/*.json")
    marks = {
        "encoding": encoded - float(read_json(layout.timing("encode", "domains"))["seconds"]),
        "trainings": encoded,
        "summaries": ended("models/*/*/training.json"),
        "scores": ended("reports/predictions/*/*.jsonl"),
    }
    ends = [*list(marks.values())[1:], ended("results/*.json.gz")]
    found = {part: (end - began) / 60 for (part, began), end in zip(marks.items(), ends, strict=True)}
    return {part: round(value, 1) for part, value in (found | {"other": total - sum(found.values())}).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total", type=float, required=True, help="minutes of the whole command, set-up included")
    parser.add_argument("--paused", nargs="*", default=[], metavar="PART=MINUTES", help="in which the work stood still")
    arguments = parser.parse_args()
    paused = {part: float(minutes) for part, _, minutes in (one.partition("=") for one in arguments.paused)}
    known: dict[str, Any] = read_json(FILE) if FILE.is_file() else {}
    found = {part: round(value - paused.get(part, 0.0), 1) for part, value in parts(arguments.total).items()}
    total = round(arguments.total - sum(paused.values()), 1)
    now = {"day": date.today().isoformat(), "machine": machine(), "total": total, "parts": found}
    write_json(FILE, known | {"now": now})


if __name__ == "__main__":
    main()
