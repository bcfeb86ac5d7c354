"""Every comparison, each in a process of its own -> reports/benchmarks: results.json, table.md and a figure.

`python -m benchmarks [NAME …] [--repeats 3]`; without names, all. A row keeps its result until it is measured again.
"""

import argparse
import importlib
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import flower, table
from pipeline.model.precision import multiplies_bf16
from pipeline.workspace.files import read_json, write_json, write_text
from pipeline.workspace.layout import REPORTS
from pipeline.workspace.progress import say
from pipeline.workspace.quiet import silence

OUT = REPORTS / "benchmarks"
FLOWER_LOCK = Path(__file__).with_name("flower.lock")
COMPARISONS = (
    "training_step",
    "prefill",
    "beam_search",
    "federated_run",
    "loop_overhead",
    "rouge",
    "arithmetic",
    "encoder_step",
    "extraction_run",
    "federations",
)
PACKAGES = ("torch", "transformers", "rouge-score", "rouge-score-rs")
PEERS = ("flwr", "ray")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(COMPARISONS)}; none: all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in COMPARISONS]
    if unknown:
        parser.error(f"no comparison {unknown[0]!r}; there are {', '.join(COMPARISONS)}")
    silence()
    if arguments.rows:
        module = importlib.import_module(f"benchmarks.{arguments.names[0]}")
        write_json(arguments.rows, [asdict(row) for row in module.rows(arguments.repeats)])
        return
    results: dict[str, Any] = read_json(OUT / "results.json") if (OUT / "results.json").is_file() else {}
    failed: list[str] = []
    for name in arguments.names or COMPARISONS:
        say(f"bench: {name}")
        rows = OUT / f".{name}.rows.json"
        command = [sys.executable, "-m", "benchmarks", name, "--repeats", str(arguments.repeats), "--rows", str(rows)]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
            continue
        about = {"day": date.today().isoformat(), "repeats": arguments.repeats, "machine": machine()}
        results[name] = [_kept({**row, "measured": about}, results.get(name, ())) for row in read_json(rows)]
        rows.unlink()
        write_json(OUT / "results.json", results)
    measured = [row for name in COMPARISONS for row in results.get(name, ())]
    write_text(OUT / "table.md", table.markdown(measured))
    table.draw(measured, OUT)
    print((OUT / "table.md").read_text(encoding="utf-8"))
    if failed:
        sys.exit(f"error: {', '.join(failed)}: failed; what it printed stands above, and its row is as it was")


def _kept(row: dict[str, Any], before: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A row that could not be measured here leaves the one that was measured elsewhere, and says so."""
    if not row["skipped"]:
        return row
    known = next((old for old in before if old["what"] == row["what"] and not old["skipped"]), row)
    kept = "" if known is row else f"; its row is that of {known['measured']['day']}"
    say(f"bench: {row['what']}: skipped: {row['skipped']}{kept}")
    return known


def machine() -> dict[str, Any]:
    """What a time depends on; no name of a machine."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name).split("+")[0]
        except PackageNotFoundError:
            packages[name] = "not installed"
    pins = (line.split("==") for line in FLOWER_LOCK.read_text(encoding="utf-8").split())
    packages |= {name: pin for name, pin in pins if name in PEERS and flower.installed()}
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").is_file() else ""
    models = [line.split(":")[1].strip() for line in flags.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "avx512": "avx512f" in flags,
        "bf16": multiplies_bf16("cpu"),
        "python": platform.python_version(),
        **packages,
    }


if __name__ == "__main__":
    main()
