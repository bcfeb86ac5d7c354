"""Behind the scores -> reports/analysis: who has which labels, and of meetings what the selective run distilled.

Of meetings: words by part of speech, deciles of the teacher's entropy, adapters tested on every client, and how
clients' data diverge.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from pipeline.clients.skews import SERVER
from pipeline.corpora.example import examples_of
from pipeline.plan.orders import AnalyzeOrder, planned_run, read_order
from pipeline.runs.analysis import crossed_of, deciles_of, divergence_of, words_of_run
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, write_json
from pipeline.workspace.progress import progress
from pipeline.workspace.record import Json
from pipeline.workspace.tables import write_table

PARTS = (
    *("client", "pos", "words", "distilled", "base_rate", "distilled_given_pos", "pos_given_distilled"),
    *("pos_given_not_distilled", "lift"),
)
SHARES = ("run", "client", "share", "value", "low", "high")


def run() -> None:
    """Write the analyses that the order names."""
    order = read_order(layout.order("analyze"), AnalyzeOrder)
    empty_folder(layout.ANALYSIS)
    write_json(layout.ANALYSIS / "about.json", order.model_dump(mode="json", exclude={"code", "packages"}))
    for setting, seeds in order.settings.items():
        write_json(layout.clients_of(setting), {"seeds": {str(seed): _clients(setting, seed) for seed in seeds}})
    examples = examples_of(order.data, load_task(order.task).kind)
    rows = [planned_run(identity) for identity in order.distilling]
    words = words_of_run([row for row in rows if row.name == rows[0].name], examples, order.sign_flips)
    write_table(layout.POS_SHARES, words.parts, PARTS)
    write_table(layout.WORD_SHARES, words.shares, SHARES)
    analyses: list[tuple[str, list[str], Callable[[str], Mapping[str, object]]]] = [
        ("deciles", order.distilling, lambda name: deciles_of(planned_run(name))),
        ("crossed", order.crossed, lambda name: crossed_of(planned_run(name))),
        ("divergence", order.partitions, lambda name: divergence_of(examples, name, order.topics)),
    ]
    with progress("analyze", sum(len(names) for _, names, _ in analyses)) as advance:
        for what, names, analysis in analyses:
            for name in names:
                write_json(layout.ANALYSIS / what / f"{name.replace('/', '-')}.json", analysis(name))
                advance(1)


def _clients(setting: str, seed: int) -> Json:
    """Client -> label -> its training examples; and how many examples neither a client nor the server has."""
    partition = read_json(layout.partition(setting, seed))
    labels, manifest = partition["labels"], partition["manifest"]
    trained = {client: own["train"] for client, own in manifest.items() if client != SERVER}
    clients = {client: dict(Counter(labels[i] for i in ids)) for client, ids in trained.items()}
    given = sum(len(ids) for own in manifest.values() for ids in own.values())
    return {"clients": clients, "unassigned": len(labels) - given}
