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
federation = typer.Typer(no_args_is_help=True, help="A federation of machines that are really apart.")
copies = typer.Typer(no_args_is_help=True, help="A copy of the workspace, for `make smoke`.")
ratings = typer.Typer(no_args_is_help=True, help="Human evaluation: blind rating sheets out, ratings in.")
app.add_typer(meetings, name="meetings")
app.add_typer(federation, name="federation")
app.add_typer(copies, name="copies")
app.add_typer(ratings, name="ratings")


Data = Annotated[str, typer.Argument(help="a data set of params.yaml")]
Setting = Annotated[str, typer.Argument(help="a setting of params.yaml")]
Run = Annotated[str, typer.Argument(help="a run of params.yaml, at all of its seeds")]


@app.command()
def plan() -> None:
    """Resolve params.yaml into one order for each stage and run."""
    from pipeline.stages.plan import run

    run()


@app.command()
def ingest(source: Annotated[str, typer.Argument(help="a source of params.yaml")]) -> None:
    """Bring a source, checked, into data/raw."""
    from pipeline.stages.ingest import run

    run(source)


@app.command()
def backbone(name: Annotated[str, typer.Argument(help="a backbone of params.yaml")]) -> None:
    """Bring a backbone's weights into models/backbones."""
    from pipeline.stages.backbone import run

    run(name)


@app.command()
def prepare(data: Data) -> None:
    """Turn a source into a data set's examples."""
    from pipeline.stages.prepare import run

    run(data)


@app.command()
def partition(setting: Setting) -> None:
    """Divide a setting's examples among its clients."""
    from pipeline.stages.partition import run

    run(setting)


@app.command()
def encode(setting: Setting) -> None:
    """Compute the frozen part of a setting's examples, once."""
    from pipeline.stages.encode import run

    run(setting)


@app.command()
def train(run: Run) -> None:
    """Train a run at its seeds; a killed training resumes at its last finished round."""
    from pipeline.runs.tracking import live

    with live(run) as log:
        from pipeline.stages.train import run as run_stage

        run_stage(run, log)


@app.command(hidden=True)
def log(run: Run) -> None:
    """Log in MLflow the rounds that a run's trainings write to standard input."""
    from pipeline.runs.tracking import log as log_rounds

    try:
        log_rounds(sys.stdin)
    except QuorumError as error:
        say(f"track: training of {run} goes on without MLflow: {error}")


@app.command()
def predict(run: Run) -> None:
    """Predict every test example with a run's models, and compute their losses."""
    from pipeline.stages.predict import run as run_stage

    run_stage(run)


@app.command()
def evaluate(run: Run) -> None:
    """Score a run's predictions."""
    from pipeline.stages.evaluate import run as run_stage

    run_stage(run)


@app.command()
def analyze() -> None:
    """Look behind the scores: what was distilled, crossed tests, divergence, who has what."""
    from pipeline.stages.analyze import run

    run()


@app.command()
def examples() -> None:
    """Render the page that quotes predictions and references."""
    from pipeline.stages.examples import run

    run()


@app.command()
def report() -> None:
    """Render the comparisons, tables, figures and the page from results/."""
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


@app.command()
def tune() -> None:
    """Choose values on validation, as `tune` in params.yaml says."""
    from pipeline.runs.tuning import tune as tune_all

    tune_all()


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


@copies.command("smoke")
def copies_smoke() -> None:
    """Lay out work/smoke: the sample and random weights."""
    from pipeline.runs.copies import lay_smoke

    lay_smoke()


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
