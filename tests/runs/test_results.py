"""Results as files, what is refused and what is missing; and scores and histories, read and compared."""

import gzip
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
from made_results import TRAINING, results_of, round_of, row_of, run_of

from pipeline.errors import QuorumError
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures, Scored, figures_of
from pipeline.plan.checks import read_params
from pipeline.plan.orders import RunRow
from pipeline.plan.resolve import resolve
from pipeline.runs import result_files
from pipeline.runs import results as of_runs
from pipeline.runs.result_files import identity_of, read_result, read_results_of, refuse_to_retrain, write_result
from pipeline.runs.results import Results, common_clients, knob_of, side_by_side
from pipeline.workspace import layout
from pipeline.workspace.files import read_json

pytestmark = pytest.mark.usefixtures("short")
BOTH_SEEDS = [row_of("ours", seed) for seed in (1, 2)]
ROW = row_of("ours", fingerprint="f")
DAMAGED = [
    (b"cut", ""),
    (gzip.compress(b"[]", mtime=0), ""),
    (gzip.compress(b'{"seeds": {"1": {"fingerprint": "f"}}}', mtime=0), r" \(no precision\)"),
]


def test_compared_means_are_over_the_same_clients() -> None:
    """One run has a fourth client with 40: its mean over the three that both have stays 20. Without one, all count."""
    values = {"A": 20.0, "B": 20.0, "C": 20.0, "D": 40.0}
    four = [Scored(f"{c}{i}", c, f"m{i}", 1, {"average": own}) for c, own in values.items() for i in range(4)]
    runs = {"three": four[:12], "four": four}
    results = results_of(scored=runs, metrics={name: figures_of(own, 200) for name, own in runs.items()})
    found = side_by_side(results, ["three", "four", "gone"], samples=200)
    means = {name: figures["mean"].metrics["average"].value for name, figures in found.items()}
    assert means == {"three": 20.0, "four": 20.0}
    assert found["four"]["D"].metrics["average"].value == 40.0
    assert results.metrics["four"]["mean"].metrics["average"].value == 25.0
    assert common_clients({"a": {"A": {}, "mean": {}}, "b": {"B": {}, "mean": {}}}) == (["A", "B"], ["A", "B"])


def test_a_runs_knob_is_its_own_and_a_quantile_what_it_was_in_nats() -> None:
    """τ = q0.88 was 3.0 and 5.0 nats in two rounds; AdaFedAvg has none."""
    history = [round_of(n, "A", 1.0, figures={"tau": tau}) for n, tau in ((1, 3.0), (2, 5.0))]
    rows = {"four": run_of("four", tau=4.0), "quantile": run_of("quantile", tau="q0.88"), "avg": run_of("avg", mu=0.1)}
    results = results_of(rows=rows, histories={"four": [], "quantile": history, "avg": []})
    assert [knob_of(results, *named) for named in (("four", "tau"), ("quantile", "tau"), ("avg", "mu"))] == [4, 4, 0.1]
    assert math.isnan(knob_of(results, "avg", "tau"))


def save(run: str, *losses: float, others: Any = ({}, {}), rounds: int = 1, most: int = 2) -> None:
    """Client A's loss at seeds 1, 2, …, over two examples, at the second seed over `most`; round 2 is the best."""
    seeds = {}
    for seed, loss, other, count in zip("12", losses, others, (2, most), strict=False):
        about = {"client": "A", "items": 10, "loss_sum": 10 * loss, "average": 20.0}
        examples = [about | {"id": f"{count}-{i}", "group": f"{count}-m{i}"} for i in range(count)]
        history = [round_of(n, "A", loss, train_loss=3.0 - n, best=n == 2).to_row() for n in range(1, rounds + 1)]
        cells = [{k: "" if v is None else str(v) for k, v in row.items()} for row in history]
        scores = {"examples": examples, "clients": {"A": other}}
        seeds[seed] = dict.fromkeys(result_files.NEEDED, "") | {"history": cells, "scores": scores}
    write_result(layout.result(run), {"seeds": seeds})


def read(*rows: RunRow) -> Results:
    return of_runs.results_of(rows, read_results_of(rows), 200, "test")


def test_a_run_is_read_over_its_seeds() -> None:
    """Losses of 2.0 and 4.0: 3.0, and each seed's own; its last round's model lost 5.0 and 6.0."""
    save("ours", 2.0, 4.0, others=[{"last_loss": 5.0}, {"last_loss": 6.0, "server_loss": 1.0}])
    results = read(*BOTH_SEEDS)
    ours = results.metrics["ours"]["A"]
    assert ours.metrics["loss"].value == 3.0
    assert ours.other_losses == {"last": 5.5}, "the server's is known of one seed alone"
    by_seed = {seed: own.metrics["ours"]["mean"].metrics["loss"].value for seed, own in results.by_seed.items()}
    assert by_seed == {1: 2.0, 2: 4.0}
    assert [own["ours"][0].values["loss"] for own in results.scored_by_seed.values()] == [20.0, 40.0]
    assert [(one.seed, one.round) for one in results.histories["ours"]] == [(1, 1), (2, 1)]


def test_a_seed_counts_by_what_it_tests() -> None:
    """Two examples with a loss of 2.0 and six of 4.0: 3.5. The last rounds' models are the best ones: as much."""
    save("ours", 2.0, 4.0, others=[{"last_loss": 2.0}, {"last_loss": 4.0}], most=6)
    figures = read(*BOTH_SEEDS).metrics["ours"]["A"]
    assert figures.metrics["loss"].value == figures.other_losses["last"] == 3.5


def test_a_training_that_patience_did_not_end_was_ended_by_the_cap() -> None:
    """The best round is the second of five, with a patience of three; of four rounds more might be better."""
    # A prolonged training's own patience is all its rounds, but the last three brought nothing.
    longer = TRAINING.model_copy(update={"patience": 5, "rounds": 5})
    for run, rounds in (("ended", 5), ("open", 4), ("longer", 5)):
        save(run, 2.0, rounds=rounds)
    results = read(row_of("ended"), row_of("open"), row_of("longer", training=longer, patience=3))
    assert [run for run in results.rows if results.capped(run)] == ["open"]


def test_metrics_are_small_for_people_and_whole_for_programs() -> None:
    """Two means a run to three digits; every figure with its interval, over seeds and of each."""
    interval = Interval(20.12345, 19.0, 21.0, 0.5)
    own = {client: Figures(4, {"average": interval, "rouge1": interval}) for client in ("A", "mean")}
    loss = {"loss": {"mean": Figures(2, {"loss": Interval(2.5, 2.0, 3.0, 0.1)}, {"last": 2.75})}}
    seed = results_of(metrics=loss)
    of_runs.write_metrics(results_of(metrics={"ours": own} | loss, by_seed={1: seed, 2: seed}), ("average", "loss"))
    assert read_json(layout.METRICS) == {"ours": {"average": 20.123}, "loss": {"loss": 2.5}}
    figure = {"value": 2.5, "low": 2.0, "high": 3.0, "standard_error": 0.1}
    whole = {"loss": {"mean": {"loss": figure, "last_loss": 2.75, "examples": 2}}}
    assert read_json(layout.all_metrics())["loss"] == whole["loss"]
    assert [read_json(layout.seed_metrics(seed)) for seed in (1, 2)] == [whole, whole]


def save_file(row: RunRow = ROW, precision: str = "fp32") -> Path:
    result = dict.fromkeys(result_files.NEEDED, "") | {"fingerprint": "f", "precision": precision}
    write_result(layout.result(row.name), {"seeds": {str(row.seed): result}})
    return layout.result(row.name)


def test_scoring_elsewhere_does_not_forget_how_long_training_took() -> None:
    """The second time is of another training."""
    for training, seconds in (("a", 812.0), ("a", None)):
        made = {"training": training, "training_seconds": seconds, "machine": f"{seconds}"}
        write_result(layout.result("ours"), {"seeds": {"1": dict.fromkeys(result_files.NEEDED, "") | made}})
    known = read_result("ours")[1]
    assert (known["training_seconds"], known["machine"]) == (812.0, "812.0")
    write_result(layout.result("ours"), {"seeds": {"1": known | {"training": "b", "training_seconds": None}}})
    assert read_result("ours")[1]["training_seconds"] is None


def test_a_result_is_of_a_run_with_its_knobs_at_its_seed_and_of_a_table_in_its_precision() -> None:
    """The same result gives the same bytes."""
    with pytest.raises(QuorumError, match="has no result of a planned run"):
        read_results_of([ROW])
    first = save_file().read_bytes()
    assert save_file().read_bytes() == first
    assert read_result(ROW.name)[ROW.seed]["precision"] == "fp32"
    others = [row_of("ours", fingerprint="g"), row_of("ours", 2, fingerprint="f")]
    assert set(result_files.planned_results([ROW, *others])) == {ROW.id}
    theirs = row_of("theirs", fingerprint="f")
    save_file(theirs, "bf16")
    with pytest.raises(QuorumError, match="one table has one precision"):
        read_results_of([ROW, theirs])


@pytest.mark.parametrize(("content", "found"), DAMAGED, ids=["cut", "no record", "no precision"])
def test_a_damaged_file_is_named_with_the_remedy(content: bytes, found: str) -> None:
    save_file().write_bytes(content)
    with pytest.raises(QuorumError, match=f"^results/ours.json.gz: is damaged{found}; run `git checkout"):
        read_result(ROW.name)


def test_another_training_is_another_run() -> None:
    """The MLflow store knows a run by its place, name, seed, knobs and the key of its training, which has its data."""
    others = [row_of("ours", fingerprint="g"), row_of("ours", 2), row_of("theirs")]
    assert len({identity_of(ROW, "k"), identity_of(ROW, "l"), *(identity_of(other, "k") for other in others)}) == 5


def test_a_committed_result_is_not_trained_again_unasked_and_missed_if_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, capture_output=True)

    path = save_file()
    git("init")
    refuse_to_retrain(ROW)  # git does not know it
    git("add", str(path))
    with pytest.raises(QuorumError, match="QUORUM_RETRAIN=1"):
        refuse_to_retrain(ROW)
    Path("dvc.lock").touch()
    git("add", "dvc.lock")
    refuse_to_retrain(ROW)  # dvc.lock says what is up to date
    git("rm", "--cached", "dvc.lock")
    monkeypatch.setenv("QUORUM_RETRAIN", "1")
    refuse_to_retrain(ROW)
    assert result_files.deleted_results([ROW]) == []
    path.unlink()
    assert result_files.deleted_results([ROW, ROW, *run_of("theirs")]) == [str(layout.result(ROW.name))]


@pytest.mark.parametrize("folder", ["full", "paper", "ablations", "faults", "fednlp"])
def test_committed_results_are_of_the_planned_runs(folder: str) -> None:
    """Every file below results/ has planned runs' fingerprints, and scores by example; else no page shows it."""
    root = Path(__file__).parents[2] / "experiments" / folder
    rows = resolve(read_params(root / "params.yaml"))["report.json"]["runs"]
    planned = {row["id"]: row["fingerprint"] for row in rows}
    for path in root.glob("results/*.json.gz"):
        for seed, result in json.loads(gzip.decompress(path.read_bytes()))["seeds"].items():
            assert result["fingerprint"] == planned.get(f"{path.name.removesuffix('.json.gz')}/{seed}")
            assert result["scores"]["examples"]
