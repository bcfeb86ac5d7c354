"""What experiments/faults tells of each run is in its committed tables."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from conftest import ROOT
from told import read, untold, words

FAULTS = ROOT / "experiments" / "faults"
ROWS = {row["run"]: row for path in (FAULTS / "reports" / "tables").glob("*.csv") for row in read(path)}
"""Run -> its row, whichever table it is in."""
ROUNDS = 30


def rounded(cell: str, digits: int = 1) -> str:
    """Without its sign, halves up: a table has two decimals."""
    return str(abs(Decimal(cell)).quantize(Decimal(10) ** -digits, ROUND_HALF_UP))


def apart(run: str, digits: int = 1) -> str:
    """From the undisturbed run, and half of the interval of that: `1.1 (0.7)`."""
    lost, half = (rounded(ROWS[run][name], digits) for name in ("less_undisturbed", "half_interval_of_it"))
    return f"{lost} ({half})"


def leaves_out_zero(run: str) -> bool:
    return abs(float(ROWS[run]["less_undisturbed"])) > float(ROWS[run]["half_interval_of_it"])


def minutes(run: str) -> float:
    return float(ROWS[run]["simulated_minutes"])


def of_dropout() -> list[str]:
    lost = [f"dropout-{share}" for share in (20, 40, 60)]
    assert [leaves_out_zero(run) for run in lost] == [True, False, False], "only the first interval leaves 0 out"
    undisturbed, repeated = ROWS["dropout-0"], [f"repeat-{share}" for share in (20, 40, 60)]
    assert {(ROWS[run]["accuracy"], ROWS[run]["development_loss"]) for run in repeated} == {
        (undisturbed["accuracy"], undisturbed["development_loss"])
    }
    times = [f"{minutes(run) / minutes('dropout-0'):.0f}" for run in repeated]
    return [
        f"{apart(lost[0])} points at 20%, {apart(lost[1])} at 40%, {apart(lost[2])} at 60%",
        f"{minutes('dropout-60') / ROUNDS:.0f} minutes instead of {minutes('dropout-0') / ROUNDS:.0f}",
        f"takes {times[0]}, {times[1]} and {times[2]} times as long",
    ]


def of_latency() -> list[str]:
    waited, buffered = (rounded(ROWS[run]["development_loss"], 2) for run in ("slow-wait", "slow-buffer"))
    assert float(ROWS["slow-buffer"]["less_undisturbed"]) > 0
    assert not leaves_out_zero("slow-buffer"), "six seeds cannot tell it from 0"
    return [
        f"waiting for them takes {minutes('slow-wait'):.0f} minutes",
        f"takes {minutes('slow-deadline'):.0f}, and costs {apart('slow-deadline')} points",
        f"takes {minutes('slow-buffer'):.0f} for as many answers, and reaches a lower loss, "
        f"{buffered} against {waited} nats",
        f"is {apart('slow-buffer')} points above",
    ]


def of_poison() -> list[str]:
    assert [leaves_out_zero(f"clean-{rule}") for rule in ("median", "trimmed")] == [False, False]
    clipped = (rounded(ROWS[f"{count}-clipped"]["less_undisturbed"], 0) for count in ("one", "two"))
    clean, one, two = (rounded(ROWS[f"{count}-mean"]["accuracy"]) for count in ("clean", "one", "two"))
    return [
        f"{clean} points become {one}, with two {two}",
        f"Multi-Krum loses {apart('one-krum', 2)} and {apart('two-krum', 2)}, the median {apart('one-median')} and "
        f"{apart('two-median')}, the trimmed mean {apart('one-trimmed')} and {apart('two-trimmed')}",
        f"multi-Krum {apart('clean-krum')}",
        f"it costs {apart('clean-clipped')} points of itself, and keeps poison to a loss of {' and '.join(clipped)}",
        "at a norm of 1.0 that was fixed beforehand",
    ]


def test_what_the_page_of_faults_tells_is_in_its_tables() -> None:
    _, told = words(FAULTS / "README.md").split("## What came out")
    assert untold(told, [*of_dropout(), *of_latency(), *of_poison()]) == []
