"""The whole DAG on real meetings with the embedded backbone, at four examples a client."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import MIRROR, Workspace, needs_mirror, needs_weights

from pipeline.workspace.layout import downloads

EXAMPLES = 4
pytestmark = [needs_mirror, needs_weights]


def test_real_meetings_through_the_whole_dag(tmp_path: Path) -> None:
    """Real meetings cut to four queries a split come in as own clients: QMSum's whole test set would take an hour."""
    assert MIRROR is not None
    workspace = Workspace(tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "downloads").symlink_to(downloads())
    own = {}
    for domain in ("Academic", "Committee", "Product"):
        own[f"Real{domain}"] = {"folder": f"data/own/Real{domain}"}
        for split in ("train", "val", "test"):
            _cut(MIRROR / "qmsum/data" / domain / split, tmp_path / f"data/own/Real{domain}/{split}")
    workspace.params(
        data_source="sample",
        corpora=["qmsum"],
        more_runs={},
        studies={},
        own=own,
        rounds=1,
        max_tokens=24,
        train_fraction=1.0,
        bootstrap_samples=200,
        permutation_samples=200,
        settings={"domains": {"kind": "domains", "clients": []}},
        runs={"zeroshot": {"method": "ZeroShot"}, "fedselectkd": {"method": "AdaFedSelectKD"}},
    )
    assert workspace.repro("main")[-1] == "main"
    metrics = json.loads((tmp_path / "reports/metrics.json").read_text())
    for client in own:
        before, after = metrics["zeroshot"][client], metrics["fedselectkd"][client]
        assert before["examples"] == after["examples"] == EXAMPLES
        assert 1.5 < after["loss"] < 5
        assert after["loss"] != before["loss"]
        assert before["rouge1"] > 5
    assert "of the gold spans" in (tmp_path / "reports/report.html").read_text()
    assert workspace.repro("main") == []


def _cut(source: Path, target: Path) -> None:
    """The first meetings of a split, until there are four specific queries."""
    left = EXAMPLES
    target.mkdir(parents=True)
    for path in sorted(source.glob("*.json")):
        meeting = json.loads(path.read_text(encoding="utf-8"))
        meeting["specific_query_list"] = meeting["specific_query_list"][:left]
        left -= len(meeting["specific_query_list"])
        (target / path.name).write_text(json.dumps(meeting), encoding="utf-8")
        if not left:
            return
