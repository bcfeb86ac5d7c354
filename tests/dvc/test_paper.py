"""What the stages of the runs beyond the main table leave, on the samples of four corpora with a tiny backbone."""

from __future__ import annotations

import csv
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from conftest import Workspace
from workspaces import BOTH

from pipeline.runs.result_files import read_result
from pipeline.workspace.files import read_json, read_jsonl
from pipeline.workspace.tables import read_table


def history(built: Workspace, run: str) -> list[dict[str, str]]:
    with (built.folder / "models" / "more" / f"{run}-1" / "history.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def scores(built: Workspace, run: str) -> dict[str, Any]:
    found: dict[str, Any] = read_result(built.folder / "results" / "more" / f"{run}-1.json.gz")["scores"]
    return found


def metrics(built: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = read_json(built.folder / "reports" / "metrics" / "more" / "all.json")
    return found


def page(built: Workspace) -> str:
    return (built.folder / "reports" / "paper.html").read_text(encoding="utf-8")


def section(built: Workspace, study: str) -> str:
    """A study's part of the page."""
    return page(built).split(f'<h2 id="{study}">')[1].split("<h2")[0]


def test_settings_have_their_clients(built: Workspace) -> None:
    assert set(scores(built, "fedselectkd-iid")["clients"]) == {"First", "Second", "Third"}
    assert set(scores(built, "fedavg-long")["clients"]) == {"AMI", "ICSI"}


def test_settings_have_as_many_test_examples_as_they_say(built: Workspace) -> None:
    balanced = scores(built, "fedselectkd-balanced")["examples"]
    assert sorted(row["client"] for row in balanced) == ["Academic"] * 3 + ["Product"] * 3
    extreme = scores(built, "fedselectkd-post")["examples"]
    assert sum(row["client"] == "SAMSum" for row in extreme) == 2


def test_a_late_client_comes_in_with_the_added_rounds(built: Workspace) -> None:
    """Two rounds, and two more."""
    rows = history(built, "fedselectkd-post")
    assert [row["round"] for row in rows if row["client"] == "SAMSum"] == ["3", "4"]
    assert [row["round"] for row in rows if row["client"] == "Academic"] == ["1", "2", "3", "4"]


def test_two_of_three_clients_train_in_a_round(built: Workspace) -> None:
    """One idles in each of two rounds, and is evaluated all the same."""
    idle = [row for row in history(built, "scaffold") if row["steps"] == "0"]
    assert len(idle) == 2
    assert all(row["train_loss"] == "" and row["validation_loss"] for row in idle)


def test_a_quantile_is_a_threshold_in_nats(built: Workspace) -> None:
    rows = history(built, "fedselectkd-balanced")
    assert all(0 < float(row["tau"]) < 6 and 0.8 < float(row["share_distilled"]) < 0.95 for row in rows)


def test_a_run_that_decodes_nothing_is_scored_by_its_loss(built: Workspace) -> None:
    rows = read_jsonl(built.folder / "reports" / "predictions" / "more" / "scaffold-1.jsonl")
    assert {row["prediction"] for row in rows} == {None}
    assert set(scores(built, "scaffold")["examples"][0]) == {"id", "client", "meeting", "tokens", "loss_sum"}
    mean = metrics(built)["scaffold"]["mean"]
    assert "average" not in mean
    assert mean["loss"]["low"] <= mean["loss"]["value"] <= mean["loss"]["high"]


@pytest.mark.parametrize("run", ["fedavg-endless", "deep"])
def test_a_run_that_the_backbone_cannot_make_is_left_out(built: Workspace, run: str) -> None:
    """The one reads more than the backbone has positions, the other adapts more layers than it has."""
    assert scores(built, run) == {"clients": {}, "examples": []}
    assert run not in metrics(built)


def test_the_plan_says_what_it_leaves_out(copy: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    copy.stage("plan")
    told = capsys.readouterr().err
    assert "studies.addition: left out, as params.yaml has no such runs: gone" in told
    assert "more_runs.deep: left out: adapted_layers: 15, but tiny-llama has 4" in told


def test_the_page_has_a_part_for_each_of_its_links(built: Workspace) -> None:
    links, parts = (re.findall(pattern, page(built)) for pattern in (r'href="#([\w-]+)"', r'<h2 id="([\w-]+)"'))
    assert links == parts
    assert set(BOTH["studies"]) - {"length", "uncached"} <= set(parts)


def test_the_page_has_a_study_of_ones_own(built: Workspace) -> None:
    assert re.findall(r"<td>\w+<small>([\w-]+)</small></td>", section(built, "mine")) == BOTH["studies"]["mine"]


def test_the_page_is_of_the_sample_and_complete_in_itself(built: Workspace) -> None:
    assert page(built).count('<p class="loud">') == 2
    assert "http" not in page(built).replace("http://www.w3.org", "")
    assert len(page(built)) < 15_000_000


def test_the_page_counts_runs_and_trainings(built: Workspace) -> None:
    """Four and ten runs, less two that are left out: 12.

    The untrained backbone is no training, fedavg-local the same as fedavg, and fedavg-base, too: 9 trainings.
    """
    assert "<dt>runs</dt><dd>12, of 9 trainings</dd>" in page(built)


def test_a_part_without_a_run_that_was_made_has_no_table_of_ours(built: Workspace) -> None:
    assert "<tbody>" not in section(built, "length").split("<h3>Here</h3>")[1]


def test_corpora_have_a_row_a_domain_and_split(built: Workspace) -> None:
    """QMSum's three domains, SAMSum, AMI and ICSI, of three splits each."""
    table = page(built).split('<h2 id="data">')[1].split("<tbody>")[2]
    rows = re.findall(r"<tr><td>(\w+), sample</td>", table)
    assert {corpus: rows.count(corpus) for corpus in rows} == {"qmsum": 9, "samsum": 3, "ami": 3, "icsi": 3}


def test_deciles_are_of_the_selective_run_and_in_order(built: Workspace) -> None:
    deciles = read_json(built.folder / "reports" / "analysis" / "deciles" / "fedselectkd-1.json")
    assert set(deciles) == {"Academic", "Committee", "Product"}
    entropies = [group["entropy"] for group in deciles["Academic"]]
    assert len(entropies) == 10
    assert entropies == sorted(entropies)


def test_the_selective_run_is_tested_by_every_client_on_every_domain(built: Workspace) -> None:
    crossed = read_json(built.folder / "reports" / "analysis" / "crossed" / "fedselectkd-1.json")
    clients = ("Academic", "Committee", "Product")
    assert {(a, b) for a, own in crossed.items() for b in own} == {(a, b) for a in clients for b in clients}


@pytest.mark.parametrize(("setting", "clients"), [("long-1", {"AMI", "ICSI"}), ("iid-1", {"First", "Second", "Third"})])
@pytest.mark.parametrize("over", ["topics", "words"])
def test_clients_of_every_setting_are_so_far_apart(
    built: Workspace, setting: str, clients: set[str], over: str
) -> None:
    """In bits: nobody from oneself, and nobody more than one from anybody."""
    found = read_json(built.folder / "reports" / "analysis" / "divergence" / f"{setting}.json")[over]
    assert set(found) == clients
    assert all(
        0 <= bits <= 1 and (one != other or bits == 0) for one, row in found.items() for other, bits in row.items()
    )


def test_every_two_runs_of_a_study_are_compared(built: Workspace) -> None:
    """On the page those with our method; a pair's gain in loss is the difference of its rows."""
    rows = read_table(built.folder / "reports" / "metrics" / "more" / "pairs.csv")
    names = [run for run in BOTH["studies"]["iid"] if run in metrics(built)]
    of_iid = [row for row in rows if (row["study"], row["metric"]) == ("iid", "loss")]
    assert [(row["run"], row["against"]) for row in of_iid] == list(combinations(names, 2))
    ours, theirs = (metrics(built)[of_iid[0][side]]["mean"]["loss"]["value"] for side in ("run", "against"))
    assert float(of_iid[0]["gain"]) == pytest.approx(theirs - ours, abs=2e-4)
    assert "fedselectkd-iid is ahead by" in section(built, "iid")


def test_figures_are_drawn_a_study_and_an_analysis(built: Workspace) -> None:
    drawn = {path.stem for path in Path(built.folder / "reports" / "figures" / "more").glob("*.png")}
    studies = set(BOTH["studies"]) - {"length", "uncached"}
    assert studies | {"crossed", "communication", "deciles_fedselectkd-1", "divergence_long-1"} <= drawn
    assert not {"length", "uncached"} & drawn, "nothing of theirs was made"
