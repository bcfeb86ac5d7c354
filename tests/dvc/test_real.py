"""The stages of the main table on real meetings with the embedded backbone, at one example a client."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import pytest
from conftest import MIRROR, SMALL, Workspace, needs_mirror, needs_weights

from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.layout import downloads

CLIENTS = ("RealAcademic", "RealProduct")
pytestmark = [needs_mirror, needs_weights]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Real meetings cut to one query a split come in as own clients: QMSum's whole test set would take an hour."""
    params: dict[str, Any] = {
        "backbone": "smollm2-135m", "backbones": ["smollm2-135m"], "rounds": 1, "max_tokens": 24, "source_tokens": 256,
        "target_tokens": 160, "train_fraction": 1.0, "validation_examples": 12, "learning_rate": 0.0024,
        "batch_size": 16, "own": {client: {"folder": f"data/own/{client}"} for client in CLIENTS},
        "settings": {"domains": {"data": "qmsum", "kind": "domains", "clients": []}},
        "sections": {"main": ["zeroshot", "fedselectkd"]},
        "runs": {name: SMALL["runs"][name] for name in ("zeroshot", "fedselectkd")},
    }  # fmt: skip
    workspace = Workspace.laid(tmp_path_factory.mktemp("real"), **SMALL | params)
    (workspace.folder / "work").mkdir()
    (workspace.folder / "work" / "downloads").symlink_to(downloads().resolve())
    for client in CLIENTS:
        for split in ("train", "val", "test"):
            domain = MIRROR / "qmsum/data" / client.removeprefix("Real") / split
            _cut(domain, workspace.folder / "data/own" / client / split)
    with pytest.MonkeyPatch.context() as patch:  # transformers reads the file three times, the names for each tensor
        for name in ("GGUFReader", "get_tensor_name_map"):
            patch.setattr(gguf, name, cache(getattr(gguf, name)))
        workspace.make()
    yield workspace
    shutil.rmtree(workspace.folder, ignore_errors=True)  # weights in fp32: half a gigabyte


def _cut(source: Path, target: Path) -> None:
    """The first meeting of a split that has a specific query, with this one alone."""
    meetings = ((path.name, read_json(path)) for path in sorted(source.glob("*.json")))
    name, meeting = next(one for one in meetings if one[1]["specific_query_list"])
    write_json(target / name, meeting | {"specific_query_list": meeting["specific_query_list"][:1]})


@pytest.mark.parametrize("client", CLIENTS)
def test_scores_of_real_references_are_those_of_a_language_model(real: Workspace, client: str) -> None:
    """A model that knows nothing would be at ln 49152 = 10.8 nats; one round of training changes the loss."""
    runs = read_json(real.folder / "reports/metrics/all.json")
    before, after = runs["zeroshot"][client], runs["fedselectkd"][client]
    assert before["examples"] == after["examples"] == 1
    assert before["rouge1"]["value"] > 5
    assert 1.5 < after["loss"]["value"] < 5
    assert after["loss"]["value"] != before["loss"]["value"]
