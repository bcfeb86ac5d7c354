"""What is special to meetings: several models a client, teachers, words, the main page and the paper's page."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Workspace
from workspaces import BOTH, DOMAINS, SMALL, stand_ins

from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.tables import read_table

RUNS = tuple(SMALL["runs"])


@pytest.fixture(scope="module")
def main(built: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The results of SMALL's runs under the page `main`."""
    own = {key: SMALL[key] for key in ("sources", "backbones", "data", "settings", "sections", "runs", "page")}
    return paged(built.copied(tmp_path_factory.mktemp("main") / "copy"), **own, paper="paper_results.csv")


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


def metrics(workspace: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = read_json(workspace.folder / "reports/metrics/all.json")
    return found


def test_a_run_has_the_other_models_of_its_clients(built: Workspace) -> None:
    """Each client's own, that before its teacher came, what it was sent; and the server's last."""
    names = {path.name for path in (built.folder / "models/fedselectkd/1/adapters").iterdir()}
    own = {f"{client}{kind}.safetensors" for client in DOMAINS for kind in ("", ".before", ".teacher")}
    assert own | {"server.safetensors"} <= names


@pytest.mark.parametrize(("run", "model"), [("fedavg", "server"), ("fedavg-local", "local")])
def test_one_training_shows_the_loss_of_the_model_that_is_evaluated(built: Workspace, run: str, model: str) -> None:
    rows = read_table(built.folder / layout.history(f"{run}/1"))
    assert [row["validation_loss"] for row in rows] == [row[f"{model}_validation_loss"] for row in rows]


def test_two_of_three_clients_train_in_a_round(built: Workspace) -> None:
    """One idles in each of two rounds, and is evaluated all the same."""
    idle = [row for row in read_table(built.folder / layout.history("scaffold/1")) if row["steps"] == "0"]
    assert len(idle) == 2
    assert all(row["train_loss"] == "" and row["validation_loss"] for row in idle)


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


@pytest.mark.parametrize(("setting", "clients"), [("long-1", {"AMI", "ICSI"}), ("iid-1", {"First", "Second", "Third"})])
@pytest.mark.parametrize("over", ["topics", "words"])
def test_clients_diverge_by_at_most_one_bit(built: Workspace, setting: str, clients: set[str], over: str) -> None:
    """And by none from themselves."""
    found = read_json(built.folder / f"reports/analysis/divergence/{setting}.json")[over]
    assert set(found) == clients
    bits = {(one, other): value for one, row in found.items() for other, value in row.items()}
    assert all(0 <= value <= (one != other) for (one, other), value in bits.items())


def test_the_page_that_quotes_texts_has_every_runs_summary_and_the_teachers_certainty(built: Workspace) -> None:
    """A case a client with the summaries of all runs, and one a client with the median gain."""
    page = (built.folder / "reports/examples.html").read_text(encoding="utf-8")
    assert page.count('class="case"') == 2 * len(DOMAINS)
    assert page.count("<dt>ZeroShot</dt>") == len(DOMAINS)
    assert page.count('class="lens"') > 0


@pytest.mark.parametrize("page", ["main", "paper"])
def test_a_page_is_of_the_sample_and_complete_in_itself(request: pytest.FixtureRequest, page: str) -> None:
    """Two warnings: of the sample, and of a model with random weights."""
    text = shown(request.getfixturevalue(page))
    assert text.count('<p class="loud">') == 2
    assert "http" not in text.replace("http://www.w3.org", "")
    assert len(text) < 15_000_000


def test_the_main_page_has_its_parts_in_order(main: Workspace) -> None:
    found = re.findall(r'<h2 id="([\w-]+)"', shown(main))
    assert found == ["scores", "training", "words", "limits", "knobs"]


def test_all_metrics_have_every_client_and_intervals_of_means(main: Workspace) -> None:
    """A client alone is tested on two meetings here: points. metrics.json has the means."""
    everything, small = metrics(main), read_json(main.folder / "reports/metrics.json")
    wanted = ("rouge1", "rouge2", "rougeL", "rougeLsum", "average", "similarity", "length", "repetition", "loss")
    assert list(small) == list(everything) == list(RUNS)
    for run, clients in everything.items():
        assert list(clients) == [*DOMAINS, "mean"]
        for client, figures in clients.items():
            ends = ["low", "high"] if client == "mean" else []
            assert all(list(figures[metric]) == ["value", *ends, "standard_error"] for metric in wanted)
        mean = clients["mean"]
        assert mean["loss"]["low"] <= mean["loss"]["value"] <= mean["loss"]["high"]
        means = {name: pytest.approx(mean[name]["value"], abs=0.0006) for name in ("average", "loss")}
        assert small[run] == means
    assert read_json(main.folder / "reports/metrics/seed-1.json") == everything


def test_the_main_table_on_the_page_has_the_rows_of_main_csv(main: Workspace) -> None:
    rows = read_table(main.folder / "reports/tables/main.csv")
    assert [(row["client"], row["run"]) for row in rows] == [(c, run) for c in (*DOMAINS, "mean") for run in RUNS]
    table = shown(main).split('<tr class="client">', 1)[1].split("</table>")[0]
    averages = re.findall(r"<tr><td>[^<]*</td><td[^>]*>(?:<span[^>]*>)?([\d.]+)", table)
    assert averages == [f"{float(row['average']):.2f}" for row in rows]


def test_comparisons_have_an_effect_where_their_runs_were_made(main: Workspace) -> None:
    """Two of the comparisons of experiments/paper are about runs of this table, each on two metrics."""
    rows = read_table(main.folder / "reports/tables/comparisons.csv")
    made = [(row["name"], row["metric"]) for row in rows if row["effect"]]
    assert made == [(name, m) for name in ("fedavg", "before-aggregation") for m in ("average", "loss")]
    assert all(float(row["low"]) <= float(row["effect"]) <= float(row["high"]) for row in rows if row["low"])


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


def test_every_two_runs_of_a_section_are_compared(paper: Workspace) -> None:
    """A pair's gain in loss is the difference of its rows."""
    rows = read_table(paper.folder / "reports/tables/pairs.csv")
    of_iid = [row for row in rows if (row["study"], row["metric"]) == ("iid", "loss")]
    assert [(row["run"], row["against"]) for row in of_iid] == list(combinations(BOTH["sections"]["iid"], 2))
    ours, theirs = (metrics(paper)[of_iid[0][side]]["mean"]["loss"]["value"] for side in ("run", "against"))
    assert float(of_iid[0]["gain"]) == pytest.approx(theirs - ours, abs=2e-4)


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
