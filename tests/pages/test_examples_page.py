"""The page that quotes predictions: of which runs and examples."""

import re
from pathlib import Path
from typing import Any

import pytest
from made_results import CLASSIFY, LEARNER, order_of, row_of, run_of, save_results

from pipeline.plan.orders import RunRow
from pipeline.stages import examples
from pipeline.workspace import layout
from pipeline.workspace.files import write_json, write_jsonl, write_text

(OURS,) = run_of("ours", tau=2.0)
THEIRS = row_of("theirs", method="AdaFedAvg", part="AdaFedAvg")
LENS = [{"client": "A", "id": "e1", "pieces": ["We", " agree"], "entropy": [1.0, 3.0]}]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with notes on two data sets."""
    monkeypatch.chdir(tmp_path)
    for name in ("qmsum", "news"):
        write_json(layout.notes(name), {"source": {"source": "mirror", "commit": None}})


def lay(row: RunRow, *, texts: bool = True, gains: tuple[float, ...] = (0.0, 0.0, 0.0)) -> None:
    """A run's predictions on three examples of client A, and their scores."""
    ids = [f"e{n}" for n in range(3)]
    lines: list[dict[str, Any]] = [{"id": i, "client": "A", "prediction": f"{row.id} on {i}"} for i in ids]
    known = {"query": "Q?", "reference": "R"} if texts else {"prediction": "sports"}
    write_jsonl(layout.predictions(row.id), (line | known for line in lines))
    write_json(layout.models_behind(row.id), {"lens": LENS if row.part == "AdaFedSelectKD" else []})
    score = [{"id": i, "client": "A", "group": i, "average": 20 + gain} for i, gain in zip(ids, gains, strict=True)]
    save_results(row, scores=score)


def rendered(*rows: RunRow, **changes: Any) -> str:
    """The page of a plan with these runs."""
    write_text(layout.order("report"), order_of(rows, **changes).model_dump_json())
    examples.run()
    return layout.EXAMPLES_PAGE.read_text(encoding="utf-8")


def test_a_page_has_a_case_a_median_and_what_the_teacher_is_sure_of() -> None:
    """Of gains 9, −4 and 1 the last is the median. τ is 2 nats: of the two words the first is distilled."""
    lay(OURS, gains=(9.0, -4.0, 1.0))
    lay(THEIRS)
    page = rendered(OURS, THEIRS, sections={"main": ["ours", "theirs"]})
    assert re.findall(r"<dd>(theirs/1 on e.)</dd>", page)[-1] == "theirs/1 on e2"
    assert "+1.00" in page
    assert re.findall(r'<span class="(\w*)"[^>]*>(.*?)</span>', page) == [("kd", "We"), ("", " agree")]


def test_only_runs_of_the_first_section_at_its_first_seed_are_quoted() -> None:
    """The left-out run has no predictions at all, nor have turns of the source any that are read."""
    later, other = THEIRS.model_copy(update={"id": "theirs/2", "seed": 2}), row_of("other")
    for row in (THEIRS, later, other):
        lay(row)
    gone = row_of("gone", left_out="is a run of scale full")
    lead = row_of("lead", method="LeadTurns", part="LeadTurns", learner=None, training=None)
    names = ["gone", "lead", "theirs"]
    page = rendered(gone, lead, THEIRS, later, other, sections={"main": names, "more": ["other"]})
    assert set(re.findall(r"<dd>(\S+) on e.</dd>", page)) == {"theirs/1"}
    assert ", of seed 1." in page


@pytest.mark.parametrize("sections", [{}, {"methods": ["tc"]}])
def test_a_plan_without_conversations_has_an_empty_page(sections: dict[str, list[str]]) -> None:
    learner = LEARNER.model_copy(update={"view": LEARNER.view.model_copy(update={"backbone": "tiny-bert"})})
    row = row_of("tc-fedavg", method="AdaFedAvg", part="AdaFedAvg", setting="tc", data=["news"], learner=learner)
    lay(row, texts=False)
    settings = {"tc": {"data": "news", "kind": "skewed", "clients": 2}}
    page = rendered(row, data={"news": CLASSIFY}, settings=settings, sections=sections)
    assert "<h1>" in page
    assert "<dd>" not in page
