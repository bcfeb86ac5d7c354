"""Refactoring changes no knob of any training; the bits of tiny pipelines are compared by `make golden`."""

import pytest
from golden import knobs

KNOBS = knobs.saved()


@pytest.mark.parametrize("where", sorted(KNOBS))
def test_no_training_has_other_knobs(where: str) -> None:
    found = knobs.trainings(*where.split(" at "))
    for run, own in KNOBS[where].items():
        assert found[run] == own, run


def test_every_experiment_and_scale_is_compared() -> None:
    assert set(KNOBS) == {f"{folder} at {scale}" for folder in knobs.folders() for scale in knobs.scales_of(folder)}
