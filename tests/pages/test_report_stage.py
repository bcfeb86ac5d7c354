"""The pages of a plan, from results in files: which runs and examples they show, and what they say of the others."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from made_results import CLASSIFY, DOMAINS, SUMMARIZE, order_of, row_of, run_of, save_results, table_rows
from workspaces import stand_ins

from pipeline.errors import QuorumError
from pipeline.federated.methods import OURS
from pipeline.pages import main, paper
from pipeline.plan.orders import RunRow
from pipeline.stages import examples, report
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, write_json, write_jsonl, write_text
from pipeline.workspace.tables import read_table, write_table

METRICS = [metric.name for metric in load_task("pipeline.tasks.summarize").metrics]
(OURS_ROW,) = run_of("ours", tau=2.0)
THEIRS = row_of("theirs", method="AdaFedAvg", part="AdaFedAvg")
ELSEWHERE = row_of("elsewhere", setting="iid")
LENS = [{"client": "A", "id": "e1", "pieces": ["We", " agree"], "entropy": [1.0, 3.0]}]
SETTINGS = {"domains": DOMAINS, "iid": {"data": "qmsum", "kind": "iid", "clients": ["C", "D"], "of": ["A", "B"]}}


def scores(value: float) -> list[dict[str, Any]]:
    """Two examples of client A and two of client B, of ten tokens and 20 nats, with this value of every metric."""
    known = dict.fromkeys([*METRICS, "reference_length"], value) | {"loss_sum": 20.0, "items": 10, "text": "hash"}
    return [{"id": f"{c}{n}", "client": c, "group": f"{c}{n}", **known} for c in "AB" for n in (1, 2)]


@pytest.fixture(autouse=True)
def workspace(short: Path) -> None:
    """An experiment's folder that compares `ours` with `theirs`, with notes on two data sets and no results yet."""
    for name in ("qmsum", "news"):
        write_json(layout.notes(name), {"source": {"source": "mirror", "commit": None}, "span_end": "inclusive"})
    comparison = "{name: c, statement: S, terms: {ours: 1, theirs: -1}, effects: {average: null}}"
    more = "deviations: D.\nsensitivities: [{title: changed thus, weigh: examples}]"
    layout.COMPARISONS.write_text(f"question: Q?\ncomparisons: [{comparison}]\n{more}\n", encoding="utf-8")


def render_main(*rows: RunRow) -> str:
    """The page on a main table of these runs, which are not on the first data set."""
    with stand_ins():
        main.run(order_of(rows, settings=SETTINGS, data={"news": CLASSIFY, "qmsum": SUMMARIZE}))
    return layout.REPORT.read_text(encoding="utf-8")


def runs_shown() -> list[str]:
    return list(dict.fromkeys(row["run"] for row in read_table(layout.MAIN_TABLE)))


def test_the_main_page_shows_one_setting_and_names_the_runs_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    for row, value in ((OURS_ROW, 21.0), (THEIRS, 20.0), (ELSEWHERE, 9.0)):
        save_results(row, scores=scores(value))
    page = render_main(OURS_ROW, THEIRS, ELSEWHERE)
    assert runs_shown() == ["ours", "theirs"]
    assert "elsewhere are of other settings than domains" in capsys.readouterr().err
    assert set(read_json(layout.identities())) == {"ours/1", "theirs/1"}
    assert read_table(layout.COMPARISONS_TABLE)[0]["effect"] == "1.0"
    assert "elsewhere" not in page
    for part in ("Q?", 'id="deviations"', 'href="#deviations"', "“S”: ours − theirs is +1.00", "qmsum, mirror"):
        assert part in page
    changed = dict(row for row in table_rows(page) if len(row) == 2)
    assert changed["ours − theirs * average ROUGE"].startswith("+1.00")


def test_a_page_has_the_scores_without_the_test_texts_that_are_trained_on() -> None:
    """Of four texts with 20 points, one has 40 and is trained on: 25 with it, and 20 without."""
    rows = scores(20.0)
    rows[-1] |= {"seen": True, "average": 40.0}
    save_results(OURS_ROW, scores=rows)
    assert re.search(r"domains: 1 of 4 test texts \(25\.0%\).* ours 25\.00, 20\.00", render_main(OURS_ROW))


def test_runs_that_are_left_out_choose_no_setting_and_miss_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    save_results(THEIRS, scores=scores(20.0))
    deep = ELSEWHERE.model_copy(update={"left_out": "adapted_layers: 9, but tiny-llama has 2 decoder layers"})
    page = render_main(deep, THEIRS)
    assert runs_shown() == ["theirs"]
    assert "elsewhere" not in page + capsys.readouterr().err
    with pytest.raises(QuorumError, match="all are left out"):
        main.run(order_of([deep], settings=SETTINGS))


def test_a_run_that_lacks_a_seed_is_missing_from_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    again = OURS_ROW.model_copy(update={"id": "ours/2", "seed": 2})
    save_results(OURS_ROW, again, scores=scores(21.0))
    save_results(THEIRS, scores=scores(20.0))
    render_main(OURS_ROW, again, THEIRS, THEIRS.model_copy(update={"id": "theirs/2", "seed": 2}))
    assert runs_shown() == ["ours"]
    assert "no result yet of theirs-2" in capsys.readouterr().err
    assert {path.name for path in layout.all_metrics().parent.glob("seed-*")} == {"seed-1.json", "seed-2.json"}


def test_turns_of_the_source_in_the_first_row_leave_the_precision_to_models() -> None:
    lead = row_of("lead", method="LeadTurns", part="LeadTurns", learner=None, training=None, evaluate=None)
    without_loss = [{k: v for k, v in one.items() if k not in ("loss_sum", "items")} for one in scores(10.0)]
    save_results(lead, scores=without_loss, cut=None, history=[], backbone_bytes=None)
    save_results(THEIRS, scores=scores(20.0))
    assert "<dd>fp32</dd>" in render_main(lead, THEIRS)


def render_paper(*rows: RunRow, analyzed: bool = True, **sections: Any) -> str:
    """The page on sections, with the files of other stages that it reads."""
    write_table(layout.data_statistics("qmsum"), [])
    for table in (layout.WORD_SHARES, layout.POS_SHARES) if analyzed else ():
        write_table(table, [], ["client", "share", "pos"])
    with stand_ins():
        paper.run(order_of(rows, settings=SETTINGS, sections=sections, page="paper"))
    return layout.REPORT.read_text(encoding="utf-8")


def test_a_page_of_sections_shows_runs_of_several_settings() -> None:
    for row, value in ((OURS_ROW, 21.0), (THEIRS, 20.0), (ELSEWHERE, 9.0)):
        save_results(row, scores=scores(value))
    left_out = row_of("deep", left_out="adapted_layers: 9, but tiny-llama has 2 decoder layers")
    sections = {"both": ["ours", "theirs", "deep"], "other": ["elsewhere"], "none": ["deep"]}
    page = render_paper(OURS_ROW, THEIRS, left_out, ELSEWHERE, **sections)
    assert [f'id="{name}"' in page for name in sections] == [True] * 3
    assert "None of its runs has results" in page.partition('id="none"')[2].partition("<h2")[0]
    pairs = [(row["study"], row["run"], row["against"]) for row in read_table(layout.TABLES / "pairs.csv")]
    assert pairs == [("both", "ours", "theirs")] * 2
    assert set(read_json(layout.all_metrics())) == {"ours", "theirs", "elsewhere"}


def test_trials_of_other_scales_are_not_shown() -> None:
    row = row_of("prox", part=OURS, training=OURS_ROW.training)
    save_results(row, scores=scores(20.0))
    trial = {"search": "mu", "chooses": "runs.prox.mu", "run": "prox", "method": "AdaFedProx", "chosen": 1}
    write_table(layout.TUNING_TABLE, [{"scale": s, "value": v} | trial for s, v in (("full", 9), ("laptop", 1))])
    page = render_paper(row, algorithms=["prox"])
    assert "prox mu=1 of 1 trials" in page
    assert "mu=9" not in page


def test_a_page_without_its_analysis_is_refused() -> None:
    save_results(OURS_ROW, scores=scores(20.0))
    with pytest.raises(QuorumError, match=r"word_shares.csv: is missing"):
        render_paper(OURS_ROW, analyzed=False)


def test_a_page_that_fails_leaves_the_tables_of_the_one_before() -> None:
    write_table(layout.TABLES / "main.csv", [{"loss": 1}])
    with suppress(ValueError), report._restoring(layout.TABLES):
        empty_folder(layout.TABLES)
        raise ValueError("of a template")
    assert read_table(layout.TABLES / "main.csv") == [{"loss": "1"}]


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
    write_text(layout.order("report"), order_of(rows, **changes).model_dump_json())
    examples.run()
    return layout.EXAMPLES_PAGE.read_text(encoding="utf-8")


def test_a_page_has_a_case_a_median_and_what_the_teacher_is_sure_of() -> None:
    """Of gains 9, −4 and 1 the last is the median. τ is 2 nats: of the two words the first is distilled."""
    lay(OURS_ROW, gains=(9.0, -4.0, 1.0))
    lay(THEIRS)
    page = rendered(OURS_ROW, THEIRS, sections={"main": ["ours", "theirs"]})
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
    row = row_of("tc-fedavg", method="AdaFedAvg", part="AdaFedAvg", data=["news"])
    lay(row, texts=False)
    page = rendered(row, data={"news": CLASSIFY}, sections=sections)
    assert "<h1>" in page
    assert "<dd>" not in page
