"""The pages of a plan, from results in files: which runs they show, and what they say of the others."""

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
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.stages import report
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, write_json
from pipeline.workspace.tables import read_table, write_table

METRICS = [metric.name for metric in load_task("pipeline.tasks.summarize").metrics]


def scores(value: float) -> list[dict[str, Any]]:
    """Two examples of client A and two of client B, of ten tokens and 20 nats, with this value of every metric."""
    known = dict.fromkeys([*METRICS, "reference_length"], value) | {"loss_sum": 20.0, "items": 10, "text": "hash"}
    return [{"id": f"{c}{n}", "client": c, "group": f"{c}{n}", **known} for c in "AB" for n in (1, 2)]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment's folder that compares `ours` with `theirs`, and has no results yet."""
    monkeypatch.chdir(tmp_path)
    comparison = "{name: c, statement: S, terms: {ours: 1, theirs: -1}, effects: {average: null}}"
    more = "deviations: D.\nsensitivities: [{title: changed thus, weigh: examples}]"
    layout.COMPARISONS.write_text(f"question: Q?\ncomparisons: [{comparison}]\n{more}\n", encoding="utf-8")


(OURS_ROW,) = run_of("ours", tau=5.0)
THEIRS = row_of("theirs", method="AdaFedAvg", part="AdaFedAvg")
ELSEWHERE = row_of("elsewhere", setting="iid")
SETTINGS = {"domains": DOMAINS, "iid": {"data": "qmsum", "kind": "iid", "clients": ["C", "D"], "of": ["A", "B"]}}


def render_main(*rows: RunRow) -> str:
    """The page on a main table of these runs, which are not on the first data set."""
    with stand_ins():
        main.run(order_of(rows, settings=SETTINGS, data={"news": CLASSIFY, "qmsum": SUMMARIZE}))
    return layout.REPORT.read_text(encoding="utf-8")


def runs_shown() -> list[str]:
    """The runs of the main table in its file, each once."""
    return list(dict.fromkeys(row["run"] for row in read_table(layout.MAIN_TABLE)))


def test_the_main_page_shows_the_first_setting_and_names_the_runs_of_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
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


def paper_order(*rows: RunRow, sections: dict[str, list[str]]) -> ReportOrder:
    """The order of a page on sections, with the files of other stages that it reads."""
    write_json(layout.notes("qmsum"), {"source": {"source": "mirror", "commit": None}, "span_end": "inclusive"})
    write_table(layout.data_statistics("qmsum"), [])
    for table in (layout.WORD_SHARES, layout.POS_SHARES):
        write_table(table, [], ["client", "share", "pos"])
    return order_of(rows, settings=SETTINGS, sections=sections, page="paper")


def test_a_page_of_sections_shows_runs_of_several_settings() -> None:
    for row, value in ((OURS_ROW, 21.0), (THEIRS, 20.0), (ELSEWHERE, 9.0)):
        save_results(row, scores=scores(value))
    left_out = row_of("deep", left_out="adapted_layers: 9, but tiny-llama has 2 decoder layers")
    with stand_ins():
        sections = {"both": ["ours", "theirs", "deep"], "other": ["elsewhere"], "none": ["deep"]}
        paper.run(paper_order(OURS_ROW, THEIRS, left_out, ELSEWHERE, sections=sections))
    page = layout.REPORT.read_text(encoding="utf-8")
    assert [f'id="{name}"' in page for name in sections] == [True] * 3
    assert "None of its runs has results" in page.partition('id="none"')[2].partition("<h2")[0]
    assert [(row["study"], row["run"], row["against"]) for row in read_table(layout.TABLES / "pairs.csv")] == [
        ("both", "ours", "theirs")
    ] * 2
    assert set(read_json(layout.all_metrics())) == {"ours", "theirs", "elsewhere"}


def test_trials_of_other_scales_are_not_shown() -> None:
    row = row_of("prox", part=OURS, training=OURS_ROW.training)
    save_results(row, scores=scores(20.0))
    trial = {"search": "mu", "chooses": "runs.prox.mu", "run": "prox", "method": "AdaFedProx", "chosen": 1}
    write_table(layout.TUNING_TABLE, [{"scale": s, "value": v} | trial for s, v in (("full", 9), ("laptop", 1))])
    with stand_ins():
        paper.run(paper_order(row, sections={"algorithms": ["prox"]}))
    page = layout.REPORT.read_text(encoding="utf-8")
    assert "prox mu=1 of 1 trials" in page
    assert "mu=9" not in page


def test_a_page_without_its_analysis_is_refused() -> None:
    save_results(OURS_ROW, scores=scores(20.0))
    order = paper_order(OURS_ROW, sections={})
    layout.WORD_SHARES.unlink()
    with stand_ins(), pytest.raises(QuorumError, match=r"word_shares.csv: is missing"):
        paper.run(order)


def test_a_page_that_fails_leaves_the_tables_of_the_one_before() -> None:
    write_table(layout.TABLES / "main.csv", [{"loss": 1}])
    with suppress(ValueError), report._restoring(layout.TABLES):
        empty_folder(layout.TABLES)
        raise ValueError("of a template")
    assert read_table(layout.TABLES / "main.csv") == [{"loss": "1"}]
