"""How the parts of params.yaml must fit together. Each check raises ValueError with a line that begins with the key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pipeline.clients.setting import Domains, Iid, is_client_name
from pipeline.corpora.qmsum import DOMAINS
from pipeline.corpora.readers import CLIENT_OF
from pipeline.federated.tolerance import Tolerance
from pipeline.model.presets import PRESETS
from pipeline.workspace.layout import OWN

if TYPE_CHECKING:
    from pipeline.plan.orders import CommonKnobs
    from pipeline.plan.run import Run
    from pipeline.plan.schema import Params

CLIENTS = (*DOMAINS, *CLIENT_OF.values())
"""Clients whose data are published."""


def check(params: Params) -> None:
    """Check all parts of params.yaml.

    Raises:
        ValueError: two parts do not fit; the message begins with a key.
    """
    _queries(params)
    twice = set(params.runs) & set(params.more_runs)
    if twice:
        raise ValueError(f"more_runs.{min(twice)}: is a name of runs, too; choose another")
    for name, setting in params.settings.items():
        unknown = [c for c in (setting.of if isinstance(setting, Iid) else setting.clients) if c not in CLIENTS]
        if unknown:
            raise ValueError(f"settings.{name}: unknown client {unknown[0]!r}; known: {', '.join(CLIENTS)}")
    for name, run in params.all_runs.items():
        _run(params, name, run)
    for name, run in params.all_runs.items():
        if strange := sorted(set(run.seeds or ()) - set(params.seeds)):
            raise ValueError(f"{params.where(name)}.seeds: {strange[0]} is none of the file's seeds")
    if strange := sorted(set(params.folds) - set(params.seeds)):
        raise ValueError(f"folds: {strange[0]}: is none of the file's seeds")
    if strange := sorted(set(params.keep_rounds) - set(params.seeds)):
        raise ValueError(f"keep_rounds: {strange[0]}: is none of the file's seeds")
    if params.tune.seed in params.seeds:
        raise ValueError(f"tune.seed: {params.tune.seed} is a seed that tables report; choose another")
    _tuned(params)
    _own_clients(params)
    _main_table(params)
    if params.weights is not None and PRESETS[params.backbone].origin != "hub":
        raise ValueError(f"weights: {params.backbone} does not come from the model hub; set weights: null")
    _decoding(params)


def _queries(params: Params) -> None:
    strange = [corpus for corpus in params.queries if corpus not in CLIENT_OF]
    if strange:
        raise ValueError(f"queries: {strange[0]}: is not a corpus without queries; known: {', '.join(CLIENT_OF)}")
    missing = [corpus for corpus in params.corpora if corpus in CLIENT_OF and corpus not in params.queries]
    if missing:
        raise ValueError(f"queries.{missing[0]}: is missing, and {missing[0]} has no queries; add one")


def _run(params: Params, name: str, run: Run) -> None:
    where = params.where(name)
    if run.setting not in params.settings:
        raise ValueError(f"{where}.setting: no setting {run.setting!r}")
    clients = params.setting_of(run.setting).clients
    if not clients:
        raise ValueError(f"settings.{run.setting}.clients: is empty, and no own clients join them")
    setting = params.settings[run.setting]
    for client in setting.of if isinstance(setting, Iid) else setting.clients:
        corpus = next((c for c, holder in CLIENT_OF.items() if holder == client), "qmsum")
        if corpus not in params.corpora:
            raise ValueError(f"{where}: client {client} needs {corpus}; add it to corpora")
    absent = [client for client in run.late if client not in setting.clients]
    if absent:
        raise ValueError(f"{where}.late: setting {run.setting} has no client {absent[0]!r}")
    if run.late and not set(clients) - set(run.late):
        raise ValueError(f"{where}.late: leaves no client to begin with; leave one out")
    if run.dropout and params.is_lora(name):
        raise ValueError(f"{where}.dropout: lora has none; set adapter: bottleneck for this run, or dropout: 0")
    training = params.training_of(name)
    drawn = training.clients_per_round or math.inf
    check_rules(where, training, min(drawn, len(clients)))
    if training.faults is not None and (strange := sorted(set(training.faults.poisoned) - set(clients))):
        raise ValueError(f"{where}: faults.poisoned: setting {run.setting} has no client {strange[0]!r}")
    if run.knobs.get("teacher") in ("initial", "others") and (run.late or drawn < len(clients)):
        raise ValueError(f"{where}: teacher: initial and others need every client in every round")


def check_rules(where: str, training: CommonKnobs, clients: float) -> None:
    """Check that the rules of tolerance fit the faults.

    Args:
        clients: the most clients that a round sends to.

    Raises:
        ValueError: a round needs more answers than it has clients, or waits forever for a client that never answers.
    """
    rules = training.tolerance or Tolerance()
    if (rules.minimum or 0) > clients:
        raise ValueError(f"{where}: tolerance.minimum: {rules.minimum}, but a round has {clients:g} clients; lower it")
    if training.faults is not None and training.faults.silent and rules.deadline is None:
        raise ValueError(f"{where}: faults: some clients never answer; set tolerance.deadline, in seconds")


def _tuned(params: Params) -> None:
    """`tune` prepares QMSum's domains at its own seed. It reports itself the runs that are no longer in the file."""
    for name in (*params.tune.families.values(), *params.tune.trials):
        if (run := params.all_runs.get(name)) is None:
            continue
        setting = params.settings[run.setting]
        if run.seeds is not None:
            raise ValueError(f"tune: {name}: has its own seeds, without tune.seed; leave it out")
        if not isinstance(setting, Domains) or set(setting.clients) - set(DOMAINS):
            raise ValueError(f"tune: {name}: setting {run.setting!r} is not of QMSum's domains alone; leave it out")


def _own_clients(params: Params) -> None:
    for name, client in params.own.items():
        if name in CLIENTS or not is_client_name(name):
            raise ValueError(f"own.{name}: is taken or has a dot; choose another name")
        if not client.folder.is_relative_to(OWN) or ".." in client.folder.parts:
            raise ValueError(f"own.{name}.folder: {client.folder} is not inside {OWN}; put the meetings there")


def _main_table(params: Params) -> None:
    """The main table's runs have the same clients and settings of the same kind."""
    settings = {run.setting: params.settings[run.setting] for run in params.runs.values()}
    if len({tuple(sorted(params.setting_of(name).clients)) for name in settings}) > 1:
        raise ValueError("runs: the main table compares runs on the same clients; put the others into more_runs")
    if any(setting.kind != "domains" for setting in settings.values()) or not all(
        run.decode for run in params.runs.values()
    ):
        raise ValueError("runs: the main table is about summaries in a setting of kind domains; see more_runs")
    for name, run in params.runs.items():
        setting = settings[run.setting]
        strangers = [client for client in setting.clients if client not in DOMAINS]
        if strangers:
            raise ValueError(f"runs.{name}.setting: the main table is about QMSum, not {strangers[0]}; see more_runs")
        if isinstance(setting, Domains) and any(share.test_examples for share in setting.only.values()):
            raise ValueError(f"runs.{name}.setting: the main table tests on whole test sets; see more_runs")
        if run.knobs.get("teacher", "server") != "server":
            raise ValueError(f"runs.{name}.teacher: its analyses are of the server's; put the run into more_runs")
        if run.knobs.get("select", "entropy") != "entropy":
            raise ValueError(f"runs.{name}.select: its analyses are of the entropy; put the run into more_runs")


def _decoding(params: Params) -> None:
    longest = {"max_tokens": params.max_tokens} | {
        f"settings.{name}.max_tokens": setting.max_tokens for name, setting in params.settings.items()
    }
    for where, most in longest.items():
        if most is not None and params.min_tokens > most:
            raise ValueError(f"min_tokens: {params.min_tokens} is above {where}: {most}")
    if params.beams == 1 and params.length_penalty != 1.0:
        raise ValueError("length_penalty: only beam search has one; set beams above 1, or length_penalty: 1.0")
