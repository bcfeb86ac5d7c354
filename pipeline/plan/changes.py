"""What a new plan changes, and how long that took when it last ran."""

from __future__ import annotations

from collections import Counter

from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json

NAMED = 12
"""The most stages that a message names one by one."""


def report_changes(orders: dict[str, Json]) -> None:
    """Print which stages' orders differ from the last plan's, and how long they took when they last ran."""
    known = layout.last_plan()
    before = read_json(known) if known.is_file() else {}
    now = {path.removesuffix(".json"): sha256_json(order) for path, order in orders.items()}
    changed = [name for name in now if before.get(name) != now[name]]
    # The plan of a copy of the workspace is not the last one here.
    if not layout.is_copy():
        write_json(known, now)
    if not changed:
        say("plan: nothing has changed")
        return
    times = [_seconds(name) for name in changed]
    measured = sum(t for t in times if t is not None)
    unknown = sum(t is None for t in times)
    say(f"plan: {len(changed)} of {len(now)} stages have a new order: {brief(changed)}")
    if unknown == len(times):
        say("plan: stages that depend on them run too; none of them has been timed here")
        return
    more = f", plus {unknown} not yet timed" if unknown else ""
    say(f"plan: when last run here they took {measured / 60:.0f} min{more}; stages that depend on them run too")


def brief(names: list[str]) -> str:
    """The names; of more than `NAMED`, how many there are of each stage."""
    if len(names) <= NAMED:
        return ", ".join(names)
    counts = Counter(name.rpartition("/")[0] or name for name in names)
    return ", ".join(stage if count == 1 else f"{count} of {stage}" for stage, count in counts.items())


def _seconds(stage: str) -> float | None:
    path = layout.timing(*stage.split("/", 1))
    # A training has one file a seed. The first run's `predict` decodes for all: one run costs the mean.
    by_seed = sorted(path.with_suffix("").glob("*.json"))
    decoded = sorted(path.parent.glob("*.json")) if stage.startswith("predict/") and path.is_file() else []
    known = by_seed or decoded or ([path] if path.is_file() else [])
    if not known:
        return None
    total = sum(float(read_json(one)["seconds"]) for one in known)
    return total / len(decoded) if decoded else total
