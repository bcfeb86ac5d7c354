"""How params.yaml is read: plain values on one line each, scales, and rows that are like others."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from conftest import EXPERIMENTS
from dvc.utils.hydra import apply_overrides
from planned import changed, written

from pipeline.errors import QuorumError
from pipeline.plan.checks import read_params
from pipeline.plan.reading import read_plain, read_scales


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"scale: a\nscale: b", 'line 2: cannot be read: found duplicate key "scale"'),
        (b"scale: yes", "line 1: scale: yes: is not plain; write a decimal number, true, false, or quoted text"),
        (b"scale: a\nrounds: 010", "line 2: rounds: 010: is not plain"),
        (b"scale: a\nrounds: 1_000", "line 2: rounds: 1_000: is not plain"),
        (b"scale: a\nrounds: 2026-01-01", "line 2: rounds: 2026-01-01: is not plain"),
        (b"scale: a\nrounds: " + b"9" * 20, "line 2: rounds: 99999999999999999999: is not plain"),
        (b"scale: a\nx: " + b"[" * 5000 + b"]" * 5000, "cannot be read: has too many levels; shorten it"),
        (b"scale: a\nx: &one 1\ny: *one", "line 3: y: anchors and merge keys are not read"),
        (b"scale: a\nx:\n  <<: {c: 1}", "line 3: x.<<: anchors and merge keys are not read"),
        (b"scale: a\n---\nscale: b", "line 2: cannot be read: but found another document"),
        (b"scale: a\nruns:\n  a/b: {}", "line 3: runs.a/b: is no name; use letters a-z, digits, '.', '_' and '-'"),
        (b"scale: a\nruns: {x: {like: y}}", "line 2: runs.x.like: no other row 'y' in runs; known: none"),
        (b"scale: a\nruns: {x: {like: y}, y: {like: x}}", "line 2: runs.y.like: no other row 'x' in runs"),
        (b"scale: a\nscales: {b: {}}", "line 1: scale: 'a'; known: b; correct it"),
        (b"rounds: 3", "scale: None is no name; correct it"),
        (b"scale: [tour]", "line 1: scale: ['tour'] is no name"),
        (b"a: [", "line 2: cannot be read: "),
        (b"", "has no keys; restore it from git"),
        (b"a: \xff", "is not UTF-8 (byte 3); save it as UTF-8"),
        (b"#" * 1_000_001, "has more than 1,000,000 characters; shorten it"),
        (None, "is missing; run from the repository's root"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, text: bytes | None, message: str) -> None:
    path = tmp_path / "params.yaml"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(QuorumError) as caught:
        read_scales(path)
    assert f"{path}: {message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mistake_has_the_line_of_its_key(tmp_path: Path) -> None:
    path = written(tmp_path, changed(**{"runs.fedavg.rounds": 0}))
    line = path.read_text(encoding="utf-8").splitlines().index("    rounds: 0") + 1
    with pytest.raises(QuorumError, match=rf"params\.yaml: line {line}: runs\.fedavg\.rounds: Input should be greater"):
        read_params(path)


def test_values_are_those_of_yaml(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("a: 1\nb: 1e-05\nc: 'yes'\nd: null\ne: true\nf: 0\ng: q0.88\n", encoding="utf-8")
    assert read_plain(path)[0] == {"a": 1, "b": 1e-5, "c": "yes", "d": None, "e": True, "f": 0, "g": "q0.88"}


SCALED = {
    "scale": "large",
    "rounds": None,
    "settings.news.clients": None,
    "scales": {
        "small": {"rounds": 2, "source_tokens": 99, "settings": {"news": {"clients": 5}}},
        "large": {"rounds": 8, "settings": {"news": {"clients": 9}}},
    },
}


def test_a_scale_has_the_values_that_the_file_leaves_out(tmp_path: Path) -> None:
    """At any depth; the file's own 300 source tokens are those of every scale."""
    path = written(tmp_path, changed(**SCALED))
    for scale, rounds, clients in (("small", 2, 5), ("large", 8, 9)):
        params = read_params(written(path.parent, changed(**SCALED | {"scale": scale})))
        assert (params.rounds, params.setting_of("news").clients, params.source_tokens) == (rounds, clients, 300)


def test_a_mistake_in_a_scale_that_is_not_chosen_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, changed(**SCALED | {"scales.small.rounds": 0}))
    with pytest.raises(QuorumError, match=r"at scale small: .*line \d+: rounds: Input should be greater"):
        read_params(path)


def test_a_row_that_is_like_another_has_the_keys_that_it_lacks(tmp_path: Path) -> None:
    """`c` is like `b`, which is like `tau-2`."""
    like = {"runs.b": {"like": "tau-2", "tau": 3.0}, "runs.c": {"like": "b", "lambda": 0.1}}
    runs = read_params(written(tmp_path, changed(**like))).runs
    assert runs["c"].knobs == {"tau": 3.0, "lambda": 0.1}
    assert (runs["c"].setting, runs["c"].decode) == ("domains", False)


@pytest.mark.parametrize("folder", EXPERIMENTS, ids=lambda folder: folder.name)
def test_setting_a_knob_changes_its_line_alone(folder: Path, tmp_path: Path) -> None:
    """As `dvc exp run -S` does: comments and all other lines stay. Of the knobs within tables about 25 a file.

    DVC's grammar has no keys that begin with a digit or hold a dot.
    """
    shipped, path = folder / "params.yaml", tmp_path / "params.yaml"
    before = shipped.read_text(encoding="utf-8").splitlines()
    knobs = dict(leaves(read_plain(shipped)[0]))
    inner = [key for key in knobs if "." in key and not re.search(r"\.\d|\.chooses\.", key)]
    for key in [key for key in knobs if "." not in key] + inner[:: 1 + len(inner) // 25]:
        shutil.copy(shipped, path)
        other = another(knobs[key])
        apply_overrides(path, [f"{key}={json.dumps(other)}"])
        assert dict(leaves(read_plain(path)[0])) == knobs | {key: other}
        after = path.read_text(encoding="utf-8").splitlines()
        lines = [line for line in unified_diff(before, after, n=0, lineterm="") if line[:3] not in ("---", "+++")]
        assert [line[0] for line in lines] == ["@", "-", "+"], lines


def leaves(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, bool | int | float | str]]:
    """Dotted key -> its value, of all plain values but those in lists."""
    for key, value in data.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        elif isinstance(value, bool | int | float | str):
            yield f"{above}{key}", value


def another(value: bool | int | float | str) -> Any:
    if isinstance(value, bool):
        return not value
    return f"{value}x" if isinstance(value, str) else value * 2 + 1
