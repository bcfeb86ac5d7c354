"""Comparisons once more with one thing changed, from scores worked by hand."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.evaluation.comparisons import Comparison, Effect, Sensitivity
from pipeline.evaluation.scores import Scored
from pipeline.runs.sensitivities import BySeed, effects_with
from pipeline.tasks.task import Metric
from pipeline.workspace.files import write_json

METRICS = {"score": Metric("score", "score", "points", "more", 2)}


def run(seed: int, a: float, b: float) -> list[Scored]:
    """Client A has eight meetings of one example that score a, client B one meeting of two that score b."""
    own = [Scored(f"a{seed}-{n}", "A", f"S{seed}{n // 4}x{n}", 1, {"score": a}) for n in range(8)]
    return own + [Scored(f"b{seed}-{n}", "B", f"T{seed}", 1, {"score": b}) for n in range(2)]


VALUES = ((1, 2.0, 12.0), (2, 4.0, 14.0))
RUNS: BySeed = {seed: {"ours": run(seed, a, b), "other": run(seed, 0.0, 0.0)} for seed, a, b in VALUES}
"""What `ours` is better by: at seed 1 by 2 and 12 at the clients, at seed 2 by 4 and 14; `other` scores 0."""
CHANGES = [
    ({"seeds": [2]}, 9.0, {2: 9.0}, 9),
    # At seed 1 (8 · 2 + 2 · 12) / 10 = 4, at seed 2 (8 · 4 + 2 · 14) / 10 = 6, so 5.
    ({"weigh": "examples"}, 5.0, {1: 4.0, 2: 6.0}, 18),
    ({"groups": "S[0-9]{2}"}, 8.0, {1: 7.0, 2: 9.0}, 6),
]


def changed(**change: Any) -> list[Effect]:
    about = {"name": "c", "statement": "s", "terms": {"ours": 1, "other": -1}, "effects": {"score": None}}
    gone = about | {"name": "gone", "terms": {"gone": 1, "other": -1}, "family": "f"}
    rows = [about | {"family": "f"}, gone, about | {"name": "seeds", "over": "seeds"}]
    comparisons = [Comparison.model_validate(row) for row in rows]
    return effects_with(Sensitivity(title="changed", **change), comparisons, RUNS, METRICS, 500)


def test_only_comparisons_over_groups_that_were_run_are_repeated() -> None:
    """Means over clients 7 and 9 at the seeds: of all their meetings (3 + 13) / 2 = 8. Holm counts what was not run."""
    (effect,) = changed()
    assert (effect.comparison.name, effect.interval.value, effect.by_seed) == ("c", 8.0, {1: 7.0, 2: 9.0})
    assert effect.p_holm == pytest.approx(2 * effect.p)


@pytest.mark.parametrize(("change", "value", "by_seed", "groups"), CHANGES, ids=["a seed", "examples", "series"])
def test_one_thing_is_changed(change: dict[str, Any], value: float, by_seed: dict[int, float], groups: int) -> None:
    """A's eight meetings are two series of four, B has one meeting: three groups a seed."""
    (effect,) = changed(**change)
    assert (effect.interval.value, effect.by_seed, effect.groups) == (value, by_seed, groups)


def test_other_results_of_a_seed_replace_it(tmp_path: Path) -> None:
    """Trained again, `ours` scores 6 and 16 at seed 1; a run that the file lacks is left out at every seed."""
    ours, other = (
        [{"run": name, "id": row.id, "client": row.client, "group": row.meeting} | row.values for row in own]
        for name, own in (("ours", run(1, 6.0, 16.0)), ("other", run(1, 0.0, 0.0)))
    )
    path = tmp_path / "anew.json"
    write_json(path, {"rows": ours + other})
    (effect,) = changed(replace={1: path})
    assert effect.by_seed == {1: 11.0, 2: 9.0}
    write_json(path, {"rows": ours})
    assert changed(replace={1: path}) == []
