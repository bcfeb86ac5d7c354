"""What README and docs/operating.md say of memory, disk and bf16 is what was measured."""

from __future__ import annotations

import json
import re

from conftest import ROOT
from told import REPORTS, read, words


def test_the_readme_asks_for_what_the_commands_took() -> None:
    """With room beside it: memory in GiB, and disk in GB, `.venv` included."""
    told = words(ROOT / "README.md")
    ask = re.search(r"(\d+) GiB of memory and (\d+) GB of disk \((\d+) and (\d+) for `make repro-all`\)", told)
    assert ask
    took = {row["command"]: row for row in read(REPORTS / "benchmarks" / "commands.csv")}
    small = next(row for command, row in took.items() if command.startswith("`make repro`"))
    large = next(row for command, row in took.items() if command.startswith("`make repro-all`"))
    long = next(row for command, row in took.items() if "on AMI and ICSI" in command)

    def numbers(text: str) -> list[float]:
        return [float(one) for one in re.findall(r"\d+\.?\d*", text)]

    memory, disk, more_memory, more_disk = map(int, ask.groups())
    assert max(numbers(small["memory"])) <= memory
    assert sum(numbers(small["disk"])) <= disk
    assert max(numbers(long["memory"])) <= more_memory
    assert sum(numbers(large["disk"])) <= more_disk


def test_what_bf16_changes_is_what_was_measured() -> None:
    found = {row["what"]: row for row in json.loads(words(REPORTS / "benchmarks" / "precision.json"))["lines"]}
    rouge = found["average ROUGE of validation summaries"]
    low, high, same = re.findall(r"\d+\.\d+|\d+(?=%)", rouge["more"].partition("95% interval")[2])
    told = (
        f"{same}% of the summaries are the same, and their average ROUGE is {-rouge['difference']:.2f} lower in bf16, "
        f"which may be chance ({float(low):.2f} lower … {float(high):.2f} higher)"
    )
    assert told in words(ROOT / "docs" / "operating.md")
    of_losses = [abs(row["difference"]) for what, row in found.items() if what.startswith("loss of")]
    assert len(of_losses) == 6
    assert max(of_losses) < 0.001
