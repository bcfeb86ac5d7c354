"""What is special to meetings: models, teachers and words, the pages, and the summary of a meeting of one's own."""

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Workspace, a_processor_with
from workspaces import BOTH, DOMAINS, stand_ins

import pipeline
from benchmarks import whole_meetings
from pipeline.errors import QuorumError
from pipeline.model import loading
from pipeline.runs.summarize import summarize_file
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.words import WHOLE


@pytest.fixture(scope="module")
def paper(built: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """All results under the page `paper`, with the paper's numbers."""
    copy = built.copied(tmp_path_factory.mktemp("paper") / "copy")
    (copy.folder / "comparisons.yaml").write_bytes((ROOT / "experiments/paper/comparisons.yaml").read_bytes())
    copy.params(page="paper", paper="paper_results.csv")
    with stand_ins():
        copy.stage("plan")
        copy.stage("report")
    return copy


def shown(workspace: Workspace) -> str:
    return (workspace.folder / "reports/report.html").read_text(encoding="utf-8")


def test_the_selective_run_is_looked_into(built: Workspace) -> None:
    """Every client is tested on every domain; deciles are in order."""
    folder = built.folder / "reports/analysis"
    crossed, deciles = (read_json(folder / name / "fedselectkd-1.json") for name in ("crossed", "deciles"))
    assert {(a, b) for a, own in crossed.items() for b in own} == {(a, b) for a in DOMAINS for b in DOMAINS}
    assert set(deciles) == set(DOMAINS)
    entropies = [group["entropy"] for group in deciles["Academic"]]
    assert len(entropies) == 10
    assert entropies == sorted(entropies)


def test_the_page_of_examples_has_two_cases_a_client(built: Workspace) -> None:
    """One with the summaries of all runs, and one with the median gain."""
    page = (built.folder / "reports/examples.html").read_text(encoding="utf-8")
    assert page.count('class="case"') == 2 * len(DOMAINS)
    assert page.count("<dt>ZeroShot</dt>") == len(DOMAINS)
    assert 'class="lens"' in page


def test_a_page_is_of_the_sample_and_complete_in_itself(paper: Workspace) -> None:
    """Two warnings: of the sample, and of a model with random weights."""
    text = shown(paper)
    assert text.count('<p class="loud">') == 2
    assert "http" not in text.replace("http://www.w3.org", "")
    assert len(text) < 15_000_000


def test_the_papers_page_has_a_part_for_each_link_and_section(paper: Workspace) -> None:
    """12 of 13 runs, as `deep` is left out. ZeroShot trains nothing, and three names are one training: 9."""
    page = shown(paper)
    links, parts = (re.findall(pattern, page) for pattern in (r'href="#([\w-]+)"', r'<h2 id="([\w-]+)"'))
    assert links == parts
    assert set(BOTH["sections"]) - {"uncached"} <= set(parts)
    section = page.split('<h2 id="mine">')[1].split("<h2")[0]
    assert re.findall(r"<td>\w+<small>([\w-]+)</small></td>", section) == BOTH["sections"]["mine"]
    assert "<dt>runs</dt><dd>12, of 9 trainings</dd>" in page


def test_corpora_have_a_row_a_domain_and_split(paper: Workspace) -> None:
    """QMSum's three domains, SAMSum, AMI and ICSI, of three splits each; no data set of another task."""
    parts = shown(paper).split('<h2 id="data">')[1].split("<h2")[0].split("<h3>")[1:]
    rows = {part.partition(", sample")[0]: part.count("<tr>") - 1 for part in parts}
    assert rows == {"qmsum": 9, "samsum": 3, "ami": 3, "icsi": 3}


def test_figures_are_drawn_a_section_and_an_analysis(paper: Workspace) -> None:
    drawn = {path.stem for path in (paper.folder / "reports/figures").glob("*.png")}
    assert {"iid", "mine", "crossed", "communication", "deciles_fedselectkd-1", "divergence_long-1"} <= drawn
    assert "uncached" not in drawn, "its only run is left out"


QUERY = "What about the budget?"
WRONG = [
    ({"run": "nope"}, "--run nope: no such run; there are zeroshot, fedavg, "),
    ({"run": "scaffold/1"}, "--run scaffold: writes no summaries"),
    ({"client": "Mars"}, "--client Mars: run fedavg/1 has no such client; it has Academic, "),
    ({"query": " "}, "--query: is empty"),
    ({"parts": "two"}, "--parts two: choose auto or one"),
]


@pytest.fixture
def meeting(built: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty turns, of which a few fit; where the trained runs are."""
    path = tmp_path / "meeting.txt"
    path.write_text("".join(f"Ann: We talk about the budget, point {i}.\n" for i in range(40)), encoding="utf-8")
    monkeypatch.chdir(built.folder)
    return path


def test_a_meeting_that_does_not_fit_is_read_in_parts(meeting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the first turn to the last, each part from the last turn of the one before."""
    summarize_file(meeting, run="fedavg/1", client="Product", turns="3-40")
    printed = capsys.readouterr().err
    read = re.findall(r"part \d+ of \d+: turns (\d+)-(\d+)", printed)
    assert f"meeting: 38 turns do not fit 300 tokens: {len(read)} parts; " in printed
    assert [first for first, _ in read] + ["40"] == ["3", *(last for _, last in read)]


def test_general_queries_are_compared_both_ways(meeting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the sample's validation meetings of a domain, with random weights."""
    monkeypatch.setattr(whole_meetings, "DOMAINS", ("Product",))
    with stand_ins():
        rows = whole_meetings.compared("fedavg")
    one, parts = rows[::2], rows[1::2]
    assert [{row["way"] for row in own} for own in (one, parts)] == [{"one"}, {"parts"}]
    assert all(a["parts"] == 1 < b["parts"] and a["read"] < b["read"] == 1 for a, b in zip(one, parts, strict=True))
    gains = {row["metric"]: row["gain"] for row in whole_meetings.means(rows)}
    words = [sum(row["words"] for row in way) / len(way) for way in (one, parts)]
    assert gains["words"] == pytest.approx(words[1] - words[0], abs=1e-5)
    assert gains["reference_words"] == 0


def test_turns_that_do_not_fit_or_are_not_chosen_stay_out(meeting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {"run": "fedavg/1", "client": "Product", "query": QUERY, "parts": "one"}
    assert summarize_file(meeting, **asked, turns=None)
    printed = capsys.readouterr().err
    assert "of 40 turns left out" in printed
    assert "meeting: turns used: " in printed
    chosen = summarize_file(meeting, **asked, turns="1-2")
    noise = "summarize: the model is a tiny one with random weights: its summaries are noise"
    assert capsys.readouterr().err.splitlines() == [noise, "meeting: turns used: 1-2"], "no turn left out"
    meeting.write_text("".join(meeting.read_text(encoding="utf-8").splitlines(keepends=True)[:2]), encoding="utf-8")
    assert summarize_file(meeting, **asked, turns=None) == chosen


def test_from_python_the_backbone_is_loaded_once(meeting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a query the whole meeting is summarized."""
    asked = {"run": "fedavg", "client": "Product", "turns": "1-2"}
    first = pipeline.summarize(str(meeting), **asked)
    monkeypatch.setattr(loading, "load_backbone", lambda *_: pytest.fail("loaded again"))
    assert pipeline.summarize(meeting, query=WHOLE, **asked) == first
    assert pipeline.summarize(meeting, **asked | {"client": "Academic"}), "another client's adapter"


def test_a_run_in_bf16_is_used_in_fp32_where_the_machine_has_no_bf16(
    copy: Workspace, meeting: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a result that is carried to another machine."""
    monkeypatch.chdir(copy.folder)
    a_processor_with("avx2", tmp_path, monkeypatch)
    order = read_json(layout.order("report"))
    for row in order["runs"]:
        row["learner"]["precision"] = "bf16"
    write_json(layout.order("report"), order)
    assert pipeline.summarize(meeting, run="fedavg", client="Product", query=QUERY, turns="1-2")
    assert "summarize: in fp32, as this machine does not multiply bf16 natively" in capsys.readouterr().err


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_what_cannot_be_summarized_is_one_line(meeting: Path, wrong: dict[str, str], message: str) -> None:
    asked: dict[str, str | None] = {"run": "fedavg", "client": "Product", "query": QUERY, "turns": None}
    with pytest.raises(QuorumError) as caught:
        summarize_file(meeting, **asked | wrong)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)
