"""The command line: one command for each DVC stage, and the commands for people."""

# Each command imports what it runs only when it is called, because torch alone takes seconds to import.

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import QuorumError
from pipeline.workspace.progress import say
from pipeline.workspace.quiet import silence
from pipeline.workspace.words import WHOLE

INTERRUPTED = 130

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
meetings = typer.Typer(no_args_is_help=True, help="Meetings as an organisation has them.")
texts = typer.Typer(no_args_is_help=True, help="The stages of an experiment on labelled texts.")
federation = typer.Typer(no_args_is_help=True, help="A federation of machines that are really apart.")
copies = typer.Typer(no_args_is_help=True, help="A copy of the workspace, for `make try`.")
ratings = typer.Typer(no_args_is_help=True, help="Human evaluation: blind rating sheets out, ratings in.")
app.add_typer(meetings, name="meetings")
app.add_typer(texts, name="texts")
app.add_typer(federation, name="federation")
app.add_typer(copies, name="copies")
app.add_typer(ratings, name="ratings")


def _with_group(run: str) -> str:
    return run if "/" in run else f"main/{run}"


RunId = Annotated[
    str,
    typer.Argument(callback=_with_group, help="a run at one seed: fedselectkd-1; beyond the main table more/fedprox-1"),
]
Corpus = Annotated[str, typer.Argument(help="a corpus of params.yaml, as in qmsum")]
Group = Annotated[str, typer.Argument(help="main, or more: the runs beyond the main table")]
Dataset = Annotated[str, typer.Argument(help="a data set of the experiment's params.yaml")]
TextRun = Annotated[str, typer.Argument(help="a run of the experiment's params.yaml, at all its seeds")]


@app.command()
def plan() -> None:
    """Resolve params.yaml into one order for each stage and run."""
    from pipeline.stages.plan import run

    run()


@app.command()
def ingest(corpus: Corpus) -> None:
    """Bring the corpora, checked, into data/raw."""
    from pipeline.stages.ingest import run

    run(corpus)


@app.command()
def backbone() -> None:
    """Bring the backbone's weights into models/backbone."""
    from pipeline.stages.backbone import run

    run()


@app.command()
def prepare(corpus: Corpus) -> None:
    """Turn the corpora into examples."""
    from pipeline.stages.prepare import run

    run(corpus)


@app.command()
def partition(setting: Annotated[str, typer.Argument(help="a setting of params.yaml")]) -> None:
    """Divide a setting's examples among its clients."""
    from pipeline.stages.partition import run

    run(setting)


@app.command()
def encode(group: Group) -> None:
    """Compute the frozen part of every example, once."""
    from pipeline.stages.encode import run

    run(group)


@app.command()
def train(run: RunId) -> None:
    """Train one run; a killed training resumes at its last finished round."""
    from pipeline.runs.prune import prune_training
    from pipeline.runs.tracking import live

    with live(run) as on_round:
        from pipeline.stages.train import run as run_stage  # while the logger starts: both take seconds

        run_stage(run, on_round)
    prune_training(run)  # frees a few hundred MB before the next training


@app.command(hidden=True)
def log(run: RunId) -> None:
    """Log in MLflow the rounds that a training writes to standard input."""
    from pipeline.runs.tracking import log as log_rounds

    try:
        log_rounds(run, sys.stdin)
    except QuorumError as error:
        say(f"track: training goes on without MLflow: {error}")


@app.command()
def generate(run: RunId) -> None:
    """Summarize every client's test set with a run's adapters."""
    from pipeline.stages.generate import run as run_stage

    run_stage(run)


@app.command()
def evaluate(run: RunId) -> None:
    """Score a run's predictions and adapters."""
    from pipeline.stages.evaluate import run as run_stage

    run_stage(run)


@app.command()
def main() -> None:
    """Render the comparisons, tables, figures and the page from results/."""
    from pipeline.stages.main import run

    run()
    _track_results()


@app.command()
def analyze() -> None:
    """Look behind the scores: teachers' deciles, crossed tests, divergence."""
    from pipeline.stages.analyze import run

    run()


@app.command()
def words() -> None:
    """Count which words the selective run distilled, by part of speech."""
    from pipeline.stages.words import run

    run()


@app.command()
def examples() -> None:
    """Render the page that quotes summaries and references."""
    from pipeline.stages.examples import run

    run()


@app.command()
def report() -> None:
    """Render the page with every table and figure of the paper, or the page of an experiment's studies."""
    from pipeline.stages.report import run

    run()
    _track_results()


def _track_results() -> None:
    """Bring the MLflow store up to date; a broken store is reported and fails nothing, as the results are files."""
    from pipeline.runs.tracking import project

    try:
        project()
    except QuorumError as error:
        say(f"track: the results are there, MLflow is not up to date: {error}")


@meetings.command("check")
def meetings_check(
    folder: Annotated[str, typer.Argument(help="a folder of .vtt, .srt, .docx, .txt or .json files")],
) -> None:
    """Report which meetings of a folder can be read, and what is wrong with the others."""
    from pipeline.runs.meetings_check import check_folder

    check_folder(folder)


@texts.command("backbone")
def texts_backbone(name: Annotated[str, typer.Argument(help="a preset")]) -> None:
    """Bring a backbone's weights into models/backbones."""
    from pipeline.stages.text_backbone import run

    run(name)


@texts.command("encode")
def texts_encode(dataset: Dataset) -> None:
    """Compute the frozen part of every text, once."""
    from pipeline.stages.encode_texts import run

    run(dataset)


@texts.command("train")
def texts_train(run: TextRun) -> None:
    """Train a run; a killed one resumes at its last round."""
    from pipeline.stages.train_texts import run as run_stage

    run_stage(run)


@texts.command("tune")
def texts_tune() -> None:
    """Choose rates and knobs by development loss, as `tune` in params.yaml says."""
    from pipeline.runs.text_tuning import tune as tune_texts

    tune_texts()


@texts.command("page")
def texts_page() -> None:
    """Render the experiment's tables, figures, page and gallery."""
    from pipeline.stages.text_page import run

    run()


@texts.command("faults-page")
def texts_faults_page() -> None:
    """Render the tables, figures and page of an experiment on faults."""
    from pipeline.stages.faults_page import run

    run()


@texts.command("evaluate")
def texts_evaluate(run: TextRun) -> None:
    """Score a run's models on their test texts."""
    from pipeline.stages.evaluate_texts import run as run_stage

    run_stage(run)


@app.command()
def tune() -> None:
    """Choose learning rates and knobs on validation, as `tune` in params.yaml says."""
    from pipeline.runs.tuning import tune as tune_meetings

    tune_meetings()


@app.command()
def missing() -> None:
    """Name the last DVC stage of every planned run without a result; refused where another precision would be used."""
    from pipeline.plan.orders import planned_runs
    from pipeline.runs.result_files import missing as without_result

    print(" ".join(without_result(planned_runs())))


@federation.command("certificates")
def federation_certificates() -> None:
    """Create or renew the certificates of federation.yaml's site."""
    from pipeline.federation.site_commands import certificates

    certificates()


@federation.command("server")
def federation_server() -> None:
    """Start the server, train with all organisations, end."""
    from pipeline.federation.site_commands import server

    server()


@federation.command("node")
def federation_node() -> None:
    """Prepare an organisation's folder, and answer the server."""
    from pipeline.federation.site_commands import node

    node()


@federation.command("status")
def federation_status() -> None:
    """Show which of this site's processes run, and the last lines of its logs."""
    from pipeline.federation.site_commands import status

    status()


@federation.command("stop")
def federation_stop() -> None:
    """End this site's processes."""
    from pipeline.federation.site_commands import stop

    stop()


@federation.command("app")
def federation_app() -> None:
    """Print the sha256 of this checkout's app, for allowed.txt."""
    from pipeline.federation.site_commands import app as print_digest

    print_digest()


@federation.command("demonstrate")
def federation_demonstrate() -> None:
    """Run three organisations and a server on this machine."""
    from pipeline.federation.loopback import demonstrate

    demonstrate()


@copies.command("try")
def copies_try() -> None:
    """Lay out work/try: the sample and random weights."""
    from pipeline.runs.copies import lay_try

    lay_try()


@ratings.command("export")
def ratings_export(
    raters: Annotated[int, typer.Option(min=1, help="how many sheets, each in another order")] = 3,
    seed: Annotated[int, typer.Option(help="which examples are drawn")] = 1,
) -> None:
    """Write rating sheets into reports/ratings: 20 test examples a domain, three pairs each."""
    from pipeline.report.ratings import export

    export(raters, seed)


@ratings.command("import")
def ratings_import(
    files: Annotated[list[Path], typer.Argument(help="what raters sent back: the page's JSON, or the filled CSV")],
) -> None:
    """Join ratings into data/ratings/ratings.csv."""
    from pipeline.report.ratings import import_ratings

    import_ratings(files)


@app.command()
def docs() -> None:
    """Render every document that has a template: NAME.md from NAME.md.j2."""
    from pipeline.report.documents import run

    run()


@app.command()
def mend() -> None:
    """Mend what a kill left half-written of DVC's own files."""
    from pipeline.workspace.mend import mend as mend_workspace

    mend_workspace()


@app.command()
def track() -> None:
    """Bring the MLflow store in line with what is on disk."""
    from pipeline.runs.tracking import project

    project()


@app.command()
def weights() -> None:
    """Fetch the embedded backbone's weights into work/downloads, without converting them."""
    from pipeline.model.obtain import fetch_embedded
    from pipeline.workspace.layout import downloads

    fetch_embedded(downloads())


@app.command()
def prune(
    unplanned: Annotated[
        bool, typer.Option(help="also checkpoints, rounds' models, prefixes and summaries of other plans")
    ] = False,
) -> None:
    """Remove the checkpoints of trainings that are finished."""
    from pipeline.runs.prune import prune as prune_work

    prune_work(unplanned=unplanned)


@app.command()
def outdated() -> None:
    """Name the stages whose corpus or weights, outside the workspace, have changed or come within reach."""
    from pipeline.plan.outdated import outdated as stages_outdated
    from pipeline.plan.schema import read_params

    print(" ".join(stages_outdated(read_params())))


@app.command()
def summarize(
    file: Annotated[Path, typer.Argument(help="a meeting: .vtt, .srt, .docx, .txt or QMSum's .json")],
    run: Annotated[str, typer.Option(help="a run of params.yaml, with or without its seed")],
    client: Annotated[str, typer.Option(help="whose adapter")],
    query: Annotated[str, typer.Option(help="what to summarize")] = WHOLE,
    turns: Annotated[str | None, typer.Option(help="use only these turns, counted from 1: A-B")] = None,
) -> None:
    """Summarize a new meeting with a client's trained adapter."""
    from pipeline.runs.summarize import summarize_file

    print(summarize_file(file, run=run, client=client, query=query, turns=turns))


def cli() -> None:
    """Run a command; an error outside the code is printed as one line, with exit status 1."""
    silence()
    _collect_rarely()
    try:
        app()
    except QuorumError as error:
        _fail(str(error))
    except SystemExit as error:
        # Typer exits like this after Ctrl-C, without a message.
        if error.code == INTERRUPTED:
            print("interrupted: finished parts stay; run the same command again to go on", file=sys.stderr)
        raise
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}; check the path, permissions and free space")


def _collect_rarely() -> None:
    """Make Python's garbage collection rarer: importing torch and transformers would spend two seconds on it.

    These imports create a million objects and no garbage, and trainings create little garbage.
    """
    gc.set_threshold(50_000, 20, 20)
    atexit.register(gc.freeze)  # the interpreter collects once more as it exits


def _fail(message: str) -> None:
    if os.environ.get("PIPELINE_DEBUG") == "1":
        traceback.print_exc()
    say(f"error: {' '.join(message.split())}")
    raise SystemExit(1)


if __name__ == "__main__":
    cli()
