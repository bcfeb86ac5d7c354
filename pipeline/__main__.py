"""The command line: one command a DVC stage, and the commands for people."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.errors import QuorumError
from pipeline.workspace.quiet import silence
from pipeline.workspace.words import WHOLE

INTERRUPTED = 130

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


def _with_group(run: str) -> str:
    return run if "/" in run else f"main/{run}"


RunId = Annotated[
    str,
    typer.Argument(callback=_with_group, help="a run at one seed: fedselectkd-1; beyond the main table more/fedprox-1"),
]
Corpus = Annotated[str, typer.Argument(help="a corpus of params.yaml, as in qmsum")]
Group = Annotated[str, typer.Argument(help="main, or more: the runs beyond the main table")]


def _add(group: typer.Typer, name: str, target: str, about: str, /, **arguments: Any) -> None:
    """A command that calls a function, imported only when it is wanted: torch alone takes seconds.

    Args:
        target: `module:function`, below `pipeline`.
        arguments: annotations of what the function is called with, by the name that usage shows.
    """

    def command(**of: str) -> None:
        _function(target)(*of.values())

    wanted = [Parameter(one, Parameter.KEYWORD_ONLY, annotation=about_it) for one, about_it in arguments.items()]
    command.__signature__ = Signature(wanted)  # type: ignore[attr-defined]
    command.__annotations__ = dict(arguments)
    group.command(name, help=about)(command)


def _function(target: str) -> Callable[..., None]:
    module, name = target.split(":")
    function: Callable[..., None] = getattr(importlib.import_module(f"pipeline.{module}"), name)
    return function


def _bring_into_mlflow() -> None:
    """The results are files already: a store that is out of order spoils none of them."""
    from pipeline.runs.tracking import project
    from pipeline.workspace.progress import say

    try:
        project()
    except QuorumError as error:
        say(f"track: the results are there, MLflow is not up to date: {error}")


_add(app, "plan", "stages.plan:run", "Resolve params.yaml into one order a stage and run.")
_add(app, "ingest", "stages.ingest:run", "Bring the corpora, checked, into data/raw.", corpus=Corpus)
_add(app, "backbone", "stages.backbone:run", "Bring the backbone's weights into models/backbone.")
_add(app, "prepare", "stages.prepare:run", "Turn the corpora into examples.", corpus=Corpus)
_add(app, "partition", "stages.partition:run", "Split the examples over clients.", group=Group)
_add(app, "encode", "stages.encode:run", "Compute what is frozen of every example, once.", group=Group)


@app.command()
def train(run: RunId) -> None:
    """Train one run; a killed training resumes at its last finished round."""
    from pipeline.runs.prune import prune_training
    from pipeline.runs.tracking import live

    with live(run) as on_round:
        _function("stages.train:run")(run, on_round)
    prune_training(run)  # a few hundred MB, which need not wait for the last training


@app.command(hidden=True)
def log(run: RunId) -> None:
    """Log in MLflow what a training tells on standard input."""
    from pipeline.runs.tracking import log as log_rounds
    from pipeline.workspace.progress import say

    try:
        log_rounds(run, sys.stdin)
    except QuorumError as error:
        say(f"track: training goes on without MLflow: {error}")


_add(app, "generate", "stages.generate:run", "Summarize every client's test set with a run's adapters.", run=RunId)
_add(app, "evaluate", "stages.evaluate:run", "Score a run's predictions and adapters.", run=RunId)


@app.command()
def main() -> None:
    """Render the comparisons, tables, figures and the page from results/."""
    _function("stages.main:run")()
    _bring_into_mlflow()


_add(app, "analyze", "stages.analyze:run", "Look behind the scores: teachers' deciles, crossed tests, divergence.")


_add(app, "words", "stages.words:run", "Count which words the selective run distilled, by part of speech.")
_add(app, "examples", "stages.examples:run", "Render the page that quotes summaries and references.")


@app.command()
def report() -> None:
    """Make the page on every table and figure of the paper; of an experiment, on its studies."""
    _function("stages.report:run")()
    _bring_into_mlflow()


meetings = typer.Typer(no_args_is_help=True, help="Meetings as an organisation has them.")
app.add_typer(meetings, name="meetings")
_add(
    meetings,
    "check",
    "runs.meetings_check:check_folder",
    "Say what of a folder's meetings can be read, and what is wrong where.",
    folder=Annotated[str, typer.Argument(help="a folder of .vtt, .srt, .docx, .txt or .json files")],
)


texts = typer.Typer(no_args_is_help=True, help="The stages of an experiment on labelled texts.")
app.add_typer(texts, name="texts")
Dataset = Annotated[str, typer.Argument(help="a data set of the experiment's params.yaml")]
TextRun = Annotated[str, typer.Argument(help="a run of the experiment's params.yaml, at all its seeds")]
_add(
    texts,
    "backbone",
    "stages.text_backbone:run",
    "Bring a backbone's weights into models/backbones.",
    name=Annotated[str, typer.Argument(help="a preset")],
)
_add(texts, "prepare", "stages.prepare_texts:run", "Turn a data set into texts, one a line.", dataset=Dataset)
_add(texts, "encode", "stages.encode_texts:run", "Compute what is frozen of every text, once.", dataset=Dataset)
_add(
    texts,
    "federate",
    "stages.federate:run",
    "Deal a data set's texts out to clients.",
    setting=Annotated[str, typer.Argument(help="a setting of the experiment's params.yaml")],
)
_add(texts, "train", "stages.train_texts:run", "Train a run; a killed one resumes at its last round.", run=TextRun)
_add(texts, "tune", "runs.text_tuning:tune", "Choose rates and knobs by development loss, as `tune` says.")
_add(texts, "page", "stages.text_page:run", "Make the experiment's tables, figures, page and gallery.")
_add(texts, "faults-page", "stages.faults_page:run", "Make the tables, figures and page of an experiment on faults.")
_add(texts, "evaluate", "stages.evaluate_texts:run", "Judge a run's models on their test texts.", run=TextRun)

_add(app, "tune", "runs.tuning:tune", "Choose learning rates and knobs on validation, as params.yaml's `tune` says.")


@app.command()
def missing() -> None:
    """Name the last DVC stage of every planned run without a result; refused where another precision would be used."""
    from pipeline.plan.orders import planned_runs
    from pipeline.runs.result_files import missing as without_result

    print(" ".join(without_result(planned_runs())))


federation = typer.Typer(no_args_is_help=True, help="A federation of machines that are really apart.")
app.add_typer(federation, name="federation")
_add(
    federation,
    "certificates",
    "federation.site_commands:certificates",
    "Make or renew what federation.yaml's site shows.",
)
_add(federation, "server", "federation.site_commands:server", "Start the server, train with all organisations, end.")
_add(federation, "node", "federation.site_commands:node", "Prepare an organisation's folder, and answer the server.")
_add(federation, "status", "federation.site_commands:status", "Say what of this site runs, and what its logs end with.")
_add(federation, "stop", "federation.site_commands:stop", "End what of this site runs.")
_add(federation, "app", "federation.site_commands:app", "Print the sha256 of this checkout's app, for allowed.txt.")
_add(federation, "demonstrate", "federation.loopback:demonstrate", "Three organisations and a server on this machine.")

copies = typer.Typer(no_args_is_help=True, help="A copy of the workspace, for `make try`.")
app.add_typer(copies, name="copies")


_add(copies, "try", "runs.copies:lay_try", "Lay out work/try: the sample and random weights.")

ratings = typer.Typer(no_args_is_help=True, help="Human evaluation: blind rating sheets out, ratings in.")
app.add_typer(ratings, name="ratings")


@ratings.command("export")
def ratings_export(
    raters: Annotated[int, typer.Option(min=1, help="how many sheets, each in another order")] = 3,
    seed: Annotated[int, typer.Option(help="which examples are drawn")] = 1,
) -> None:
    """Write rating sheets into reports/ratings: 20 test examples a domain, three pairs each."""
    importlib.import_module("pipeline.report.ratings").export(raters, seed)


FilledSheets = Annotated[list[Path], typer.Argument(help="what raters sent back: the page's JSON, or the filled CSV")]
_add(
    ratings,
    "import",
    "report.ratings:import_ratings",
    "Join ratings into data/ratings/ratings.csv.",
    files=FilledSheets,
)


@app.command()
def docs() -> None:
    """Render every document that has a template: NAME.md from NAME.md.j2."""
    from pipeline.report.documents import run

    run()


_add(app, "mend", "workspace.mend:mend", "Mend what a kill left half-written of DVC's own files.")

_add(app, "track", "runs.tracking:project", "Bring the MLflow store in line with what is on disk.")


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
    import pipeline.runs.prune

    pipeline.runs.prune.prune(unplanned=unplanned)


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
    """Run a command; what is wrong outside the code is one line and exit status 1."""
    silence()
    _collect_rarely()
    try:
        app()
    except QuorumError as error:
        _fail(str(error))
    except SystemExit as error:
        # Typer's own answer to Ctrl-C; it says nothing.
        if error.code == INTERRUPTED:
            print("interrupted; the same command goes on where it stopped", file=sys.stderr)
        raise
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}; check the path, permissions and free space")


def _collect_rarely() -> None:
    """Imports of torch and transformers make a million objects and no garbage: looking for it takes a second, twice.

    Trainings make hardly any, so that what lies around longer is small.
    """
    gc.set_threshold(50_000, 20, 20)
    atexit.register(gc.freeze)  # the interpreter looks once more as it ends


def _fail(message: str) -> None:
    if os.environ.get("PIPELINE_DEBUG") == "1":
        traceback.print_exc()
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    cli()
