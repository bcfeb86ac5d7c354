"""Picks the sentences of a new text with a client's trained model, and marks them in the text, as a page."""

from itertools import zip_longest
from pathlib import Path

from pipeline.corpora.documents import Document, units_of
from pipeline.corpora.example import examples_of
from pipeline.corpora.people_files import text_of
from pipeline.errors import QuorumError
from pipeline.report.page import page
from pipeline.runs.summarize import model_of_client, reading_of, row_of
from pipeline.tasks.task import load_task
from pipeline.workspace.files import write_text
from pipeline.workspace.progress import say


def extract_file(file: Path, *, run: str, client: str) -> str:
    """Return the chosen sentences with the probability of each, one a line; writes the page next to the text.

    As many are chosen as of a document of the run's data set.

    Raises QuorumError if the file is empty or no text, or if the run or the client is wrong.
    """
    row = row_of(run, client)
    if row.learner is None or load_task(row.learner.task).kind is not Document:
        raise QuorumError(f"--run {row.name}: has no model that picks sentences; choose another run")
    path, units = model_of_client(row, client), units_of(text_of(file))
    if not units:
        raise QuorumError(f"{file}: has no sentence; write some")
    known = next(iter(examples_of(row.data, Document).values()))
    document = Document(file.stem, "test", "", file.stem, units, (), (), known.length)
    import torch  # seconds, and a wrong argument should fail at once

    from pipeline.model.adapter import on_device, read_adapter
    from pipeline.model.encoder import Encoder
    from pipeline.tasks.extract import TASK, select

    reading = reading_of(row.learner)
    model = reading.model
    assert isinstance(model, Encoder)
    (prefix,) = reading.encode(reading.windows(document))
    with torch.no_grad():
        logits = TASK.outputs(model, [prefix], on_device(read_adapter(path), model.device)).cpu()
    scores = logits.softmax(1)[:, 1].tolist()
    chosen = select(units, (logits[:, 1] - logits[:, 0]).tolist(), document.count(len(scores)))
    if len(scores) < len(units):
        say(f"{file.stem}: the first {len(scores)} of {len(units)} sentences are read")
    marked = [(unit, place in chosen, sure) for place, (unit, sure) in enumerate(zip_longest(units, scores))]
    shown = file.with_name(f"{file.name}.extract.html")
    write_text(shown, page("extract_page.html.j2", name=file.name, run=row.id, client=client, units=marked))
    say(f"{file.stem}: {shown} has them marked")
    return "\n".join(f"{scores[place]:4.0%}  {units[place]}" for place in chosen)
