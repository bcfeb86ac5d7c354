"""The command line: one command for each DVC stage, and the commands for people."""

# Each command imports what it runs only when it is called, because torch alone takes seconds to import.

import atexit
import gc
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.errors import QuorumError
from pipeline.workspace.layout import downloads
from pipeline.workspace.progress import say
from pipeline.workspace.quiet import silence

INTERRUPTED = 130
CALLS = {
    "plan": ("stages.plan:run", "Resolve params.yaml into one order for each stage and run."),
    "analyze": ("stages.analyze:run", "Look behind the scores: what was distilled, crossed tests, divergence."),
    "examples": ("stages.examples:run", "Render the page that quotes predictions and references."),
    "outdated": ("stages.plan:print_outdated", "Name the stages whose corpus or weights, outside, have changed."),
    "tune": ("runs.tuning:tune", "Choose values on validation, as `tune` in params.yaml says."),
    "docs": ("report.documents:run", "Render every document that has a template: NAME.md from NAME.md.j2."),
    "mend": ("workspace.mend:mend", "Mend what a kill left half-written of DVC's own files."),
    "track": ("runs.tracking:project", "Bring the MLflow store in line with what is on disk."),
    "federation certificates": ("federation.site_commands:certificates", "Create or renew this site's certificates."),
    "federation server": ("federation.site_commands:server", "Start the server, train with all organisations, end."),
    "federation node": ("federation.site_commands:node", "Prepare an organisation's folder, and answer the server."),
    "federation status": ("federation.site_commands:status", "Show this site's processes, and the ends of its logs."),
    "federation stop": ("federation.site_commands:stop", "End this site's processes."),
    "federation app": ("federation.site_commands:app", "Print the sha256 of this checkout's app, for allowed.txt."),
    "federation demonstrate": ("federation.loopback:demonstrate", "Run three organisations and a server here."),
    "copies smoke": ("runs.copies:lay_smoke", "Lay out work/smoke: the sample and random weights."),
}
"""Command -> the function that it calls, without arguments, and its help."""
STAGES = {
    "ingest": "Bring a source, checked, into data/raw.",
    "prepare": "Turn a source into a data set's examples.",
    "backbone": "Fetch a backbone's weights and tokenizer, and convert them.",
    "partition": "Divide a setting's examples among its clients.",
    "encode": "Compute the frozen part of a setting's examples, once.",
    "predict": "Predict every test example with a run's models, and compute their losses.",
    "evaluate": "Score a run's predictions.",
}
"""Stage of an item -> its help."""

Item = Annotated[str, typer.Argument(help="its name in params.yaml")]


def _group(text: str) -> typer.Typer:
    return typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=text)


app = _group(__doc__)
GROUPS = {
    "meetings": _group("Meetings as an organisation has them."),
    "federation": _group("A federation of machines that are really apart."),
    "copies": _group("A copy of the workspace, for `make smoke`."),
    "ratings": _group("Human evaluation: blind rating sheets out, ratings in."),
}


def _call(target: str, *arguments: object, **options: object) -> Any:
    """Import a module of ours, and call its function."""
    module, _, function = target.partition(":")
    return getattr(import_module(f"pipeline.{module}"), function)(*arguments, **options)


def _add_call(command: str, target: str, text: str) -> None:
    group, _, name = command.rpartition(" ")
    (GROUPS[group] if group else app).command(name, help=text)(lambda: _call(target))


def _add_stage(stage: str, text: str) -> None:
    def call(name: Item) -> None:
        _call(f"stages.{stage}:run", name)

    app.command(stage, help=text)(call)


for _name, _commands in GROUPS.items():
    app.add_typer(_commands, name=_name)
for _name, (_target, _text) in CALLS.items():
    _add_call(_name, _target, _text)
for _name, _text in STAGES.items():
    _add_stage(_name, _text)


@app.command()
def train(run: Item) -> None:
    """Train a run at its seeds; a killed training resumes at its last finished round."""
    with _call("runs.tracking:live", run) as log_round:
        _call("stages.train:run", run, log_round)


@app.command(hidden=True)
def log(run: Item) -> None:
    """Log in MLflow the rounds that a run's trainings write to standard input."""
    try:
        _call("runs.tracking:log", sys.stdin)
    except QuorumError as error:
        say(f"track: training of {run} goes on without MLflow: {error}")


@app.command()
def report() -> None:
    """Render the comparisons, tables, figures and the page from results/."""
    _call("stages.report:run")
    try:
        _call("runs.tracking:project")
    except QuorumError as error:  # the results are files
        say(f"track: the results are there, MLflow is not up to date: {error}")


@GROUPS["meetings"].command("check")
def meetings_check(
    folder: Annotated[str, typer.Argument(help="a folder of .vtt, .srt, .sbv, .docx, .txt or .json files")],
) -> None:
    """Report which meetings of a folder can be read, and what is wrong with the others."""
    _call("runs.meetings_check:check_folder", folder)


@app.command()
def missing() -> None:
    """Name the last DVC stage of every planned run without a result; refused where another precision would be used."""
    print(" ".join(_call("runs.result_files:missing", _call("plan.orders:planned_runs"))))


@GROUPS["ratings"].command("export")
def ratings_export(
    raters: Annotated[int, typer.Option(min=1, help="how many sheets, each in another order")] = 3,
    seed: Annotated[int, typer.Option(help="which examples are drawn")] = 1,
) -> None:
    """Write rating sheets into reports/ratings: 20 test examples a domain, three pairs each."""
    _call("report.ratings:export", raters, seed)


@GROUPS["ratings"].command("import")
def ratings_import(
    files: Annotated[list[Path], typer.Argument(help="what raters sent back: the page's JSON, or the filled CSV")],
) -> None:
    """Join ratings into results/ratings.csv."""
    _call("report.ratings:import_ratings", files)


@app.command()
def weights() -> None:
    """Fetch the embedded backbone's weights into work/downloads, without converting them."""
    _call("model.obtain:fetch_embedded", downloads())


@app.command()
def prune(
    unplanned: Annotated[
        bool, typer.Option(help="also checkpoints, rounds' models, prefixes and summaries of other plans")
    ] = False,
) -> None:
    """Remove the checkpoints of trainings that are finished."""
    _call("runs.prune:prune", unplanned=unplanned)


@app.command()
def summarize(
    file: Annotated[Path, typer.Argument(help="a meeting: .vtt, .srt, .sbv, .docx, .txt or QMSum's .json")],
    run: Annotated[str, typer.Option(help="a run of params.yaml, with or without its seed")],
    client: Annotated[str, typer.Option(help="whose adapter")],
    query: Annotated[str | None, typer.Option(help="what to summarize; without it, the whole meeting")] = None,
    turns: Annotated[str | None, typer.Option(help="use only these turns, counted from 1: A-B")] = None,
    parts: Annotated[str, typer.Option(help="of a long meeting: auto, all of it in parts; one, what fits")] = "auto",
) -> None:
    """Summarize a new meeting with a client's trained adapter."""
    how = {"query": query, "turns": turns, "parts": parts}
    print(_call("runs.summarize:summarize_file", file, run=run, client=client, **how))


@app.command()
def extract(
    file: Annotated[Path, typer.Argument(help="a text file")],
    run: Annotated[str, typer.Option(help="a run of params.yaml, with or without its seed")],
    client: Annotated[str, typer.Option(help="whose model")],
) -> None:
    """Pick a text's sentences with a client's trained model, and mark them in FILE.extract.html."""
    print(_call("report.extracts:extract_file", file, run=run, client=client))


def cli() -> None:
    """Run a command; an error outside the code is printed as one line, with exit status 1."""
    silence()
    # Collected rarely: importing torch and transformers creates a million objects and no garbage, and Python would
    # look through them for two seconds, and once more as it exits.
    gc.set_threshold(50_000, 20, 20)
    atexit.register(gc.freeze)
    try:
        app()
    except QuorumError as error:
        _fail(str(error))
    except SystemExit as error:
        if error.code == INTERRUPTED:  # Typer exits like this after Ctrl-C, without a message.
            print("interrupted: finished parts stay; run the same command again to go on", file=sys.stderr)
        raise
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}; check the path, permissions and free space")


def _fail(message: str) -> None:
    if os.environ.get("PIPELINE_DEBUG") == "1":
        traceback.print_exc()
    say(f"error: {' '.join(message.split())}")
    raise SystemExit(1)


if __name__ == "__main__":
    cli()
