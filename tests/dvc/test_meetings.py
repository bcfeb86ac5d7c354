"""What is special to meetings: several models a client, teachers, words, the main page and the paper's page."""

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Workspace
from workspaces import BOTH, DOMAINS, stand_ins

from pipeline.workspace.files import read_json


@pytest.fixture(scope="module")
def paper(built: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """All results under the page `paper`."""
    return paged(built.copied(tmp_path_factory.mktemp("paper") / "copy"), page="paper")


def paged(copy: Workspace, **changes: Any) -> Workspace:
    (copy.folder / "comparisons.yaml").write_bytes((ROOT / "experiments/paper/comparisons.yaml").read_bytes())
    copy.params(**changes)
    with stand_ins():
        copy.stage("plan")
        copy.stage("report")
    return copy


def shown(workspace: Workspace) -> str:
    return (workspace.folder / "reports/report.html").read_text(encoding="utf-8")


def test_the_selective_run_is_looked_into(built: Workspace) -> None:
    """Every client is tested on every domain; deciles are in order."""
    crossed, deciles = (
        read_json(built.folder / f"reports/analysis/{name}/fedselectkd-1.json") for name in ("crossed", "deciles")
    )
    assert {(a, b) for a, own in crossed.items() for b in own} == {(a, b) for a in DOMAINS for b in DOMAINS}
    assert set(deciles) == set(DOMAINS)
    entropies = [group["entropy"] for group in deciles["Academic"]]
    assert len(entropies) == 10
    assert entropies == sorted(entropies)


def test_the_page_that_quotes_texts_has_every_runs_summary_and_the_teachers_certainty(built: Workspace) -> None:
    """A case a client with the summaries of all runs, and one a client with the median gain."""
    page = (built.folder / "reports/examples.html").read_text(encoding="utf-8")
    assert page.count('class="case"') == 2 * len(DOMAINS)
    assert page.count("<dt>ZeroShot</dt>") == len(DOMAINS)
    assert page.count('class="lens"') > 0


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


def test_figures_are_drawn_a_section_and_an_analysis(paper: Workspace, tmp_path: Path) -> None:
    """The analyses are sections of the paper's own page."""
    own = paper.copied(tmp_path / "own")
    own.params(paper="paper_results.csv")
    own.stage("plan")
    with stand_ins():
        own.stage("report")
    drawn = {path.stem for path in (own.folder / "reports/figures").glob("*.png")}
    assert {"iid", "mine", "crossed", "communication", "deciles_fedselectkd-1", "divergence_long-1"} <= drawn
    assert "uncached" not in drawn, "its only run is left out"
