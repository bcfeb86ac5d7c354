"""The command line: one command a DVC stage, and the commands for people."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import QuorumError
from pipeline.quiet import silence

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)

RunId = Annotated[str, typer.Argument(help="a run at one seed, as in fedselectkd-1")]


def _stage(name: str) -> Callable[..., None]:
    """A stage's `run`, imported only when it is wanted: torch alone takes seconds."""
    run: Callable[..., None] = importlib.import_module(f"pipeline.stages.{name}").run
    return run


@app.command()
def plan() -> None:
    """Resolve params.yaml into one spec a stage and run."""
    _stage("plan")()


@app.command()
def ingest() -> None:
    """Bring the corpora, checked, into data/raw."""
    _stage("ingest")()


@app.command()
def backbone() -> None:
    """Bring the backbone's weights into models/backbone."""
    _stage("backbone")()


@app.command()
def prepare() -> None:
    """Turn the corpora into examples."""
    _stage("prepare")()


@app.command()
def partition() -> None:
    """Split the examples over clients."""
    _stage("partition")()


@app.command()
def encode() -> None:
    """Compute what is frozen of every example, once."""
    _stage("encode")()


@app.command()
def train(run: RunId) -> None:
    """Train one run; a killed training resumes at its last finished round."""
    from pipeline.prune import prune
    from pipeline.tracking import live

    # A few hundred MB a training: those that are done need not wait for the last one.
    prune(running=run)
    with live(run) as on_round:
        _stage("train")(run, on_round)


@app.command()
def generate(run: RunId) -> None:
    """Summarize every client's test set with a run's adapters."""
    _stage("generate")(run)


@app.command()
def evaluate(run: RunId) -> None:
    """Score a run's predictions and adapters."""
    _stage("evaluate")(run)


@app.command()
def main() -> None:
    """Make the main table, the POS analysis, the figures and the report."""
    from pipeline.progress import say
    from pipeline.tracking import project

    _stage("main")()
    try:
        project()
    except QuorumError as error:
        say(f"track: the results are there, MLflow is not up to date: {error}")


@app.command()
def track() -> None:
    """Bring the MLflow store in line with what is on disk."""
    from pipeline.tracking import project

    project()


@app.command()
def weights() -> None:
    """Fetch the embedded backbone's weights into work/downloads, without converting them."""
    from pipeline.layout import downloads
    from pipeline.model.obtain import fetch_embedded

    fetch_embedded(downloads())


@app.command()
def prune(
    unplanned: Annotated[bool, typer.Option(help="also checkpoints, prefixes and summaries of other plans")] = False,
) -> None:
    """Remove the checkpoints of trainings that are finished."""
    import pipeline.prune

    pipeline.prune.prune(unplanned=unplanned)


@app.command("better-source")
def better_source() -> None:
    """Exit with 0 if data_source is auto and a better source than the recorded one is within reach now."""
    from pipeline.corpora.sources import better_than_recorded
    from pipeline.params import read_params

    raise typer.Exit(0 if better_than_recorded(read_params().data_source) else 1)


@app.command()
def summarize(
    file: Annotated[Path, typer.Argument(help="a meeting: QMSum JSON, or text with `Speaker: words` lines")],
    run: Annotated[str, typer.Option(help="a run of params.yaml, with or without its seed")],
    client: Annotated[str, typer.Option(help="whose adapter")],
    query: Annotated[str, typer.Option(help="what to summarize")],
    turns: Annotated[str | None, typer.Option(help="use only these turns, counted from 1: A-B")] = None,
) -> None:
    """Summarize a new meeting with a client's trained adapter."""
    from pipeline.summarize import summarize_file

    print(summarize_file(file, run=run, client=client, query=query, turns=turns))


def cli() -> None:
    """Run a command; what is wrong outside the code is one line and exit status 1."""
    silence()
    try:
        app()
    except QuorumError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted; the same command goes on where it stopped")
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}; check the path, permissions and free space")


def _fail(message: str) -> None:
    if os.environ.get("PIPELINE_DEBUG") == "1":
        traceback.print_exc()
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    cli()
