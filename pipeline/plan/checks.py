"""How the parts of params.yaml must fit together. Each check raises ValueError with a line that begins with the key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pipeline.clients.setting import Iid, is_client_name
from pipeline.clients.skews import Given, Natural, Skewed
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.qmsum import DOMAINS
from pipeline.corpora.readers import CLIENT_OF
from pipeline.federated.tolerance import Tolerance
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.presets import ENCODERS, PRESETS
from pipeline.plan.data import Data
from pipeline.plan.pages import is_called_after
from pipeline.tasks import TASKS
from pipeline.tasks.task import load_task, writes
from pipeline.workspace.layout import OWN
from pipeline.workspace.record import Json

if TYPE_CHECKING:
    from pipeline.plan.orders import CommonKnobs
    from pipeline.plan.schema import Params

CLIENTS = (*DOMAINS, *CLIENT_OF.values())
"""Clients by domain whose data are published."""
OF_ONE = ("backbone", "frozen", "rounds", "clients_per_round", "batch_size", "seeds")
"""What a data set may have for its runs, if no setting has it together with another data set."""


def check(params: Params) -> None:
    """Check all parts of params.yaml.

    Raises:
        ValueError: two parts do not fit; the message begins with a key.
    """
    _data(params)
    for name in params.settings:
        _setting(params, name)
    for name in params.runs:
        _run(params, name)
    _lists(params)
    _own_clients(params)
    _seeds(params)
    _decoding(params)
    for section, names in params.sections.items():
        if strange := [name for name in names if name not in params.runs and name not in params.settings]:
            raise ValueError(f"sections.{section}: no run or setting {strange[0]!r}; correct it")


def _data(params: Params) -> None:
    for name, data in params.data.items():
        conversation = load_task(TASKS[data.task]).kind is Conversation
        if data.source in CLIENT_OF and data.query is None:
            raise ValueError(f"data.{name}.query: is missing, and {data.source} has no queries; add one")
        if data.query is not None and data.source not in CLIENT_OF:
            raise ValueError(f"data.{name}.query: {data.source} has queries of its own, or no task for one; remove it")
        if data.file is not None and (conversation or data.source != name):
            what = "meetings are brought as folders, in `own`" if conversation else f"set source: {name}"
            raise ValueError(f"data.{name}.file: {what}")


def _setting(params: Params, name: str) -> None:
    setting = params.settings[name]
    if strange := [one for one in setting.data_sets if one not in params.data]:
        known = ", ".join(params.data)
        raise ValueError(f"settings.{name}.data: no data set {strange[0]!r}; known: {known}")
    own = [params.data[one] for one in setting.data_sets]
    if len({data.task for data in own}) > 1:
        raise ValueError(f"settings.{name}.data: are of two tasks; choose data sets of one")
    for key in OF_ONE if len(own) > 1 else ():
        if any(getattr(data, key) is not None for data in own):
            raise ValueError(f"settings.{name}.data: of several data sets none can have its own {key}; set it in runs")
    if isinstance(setting, Skewed | Natural | Given):
        if len(own) > 1:
            raise ValueError(f"settings.{name}.data: kind: {setting.kind} divides one data set; name one")
        return
    if load_task(TASKS[own[0].task]).kind is not Conversation:
        raise ValueError(f"settings.{name}.kind: {setting.kind} is of meetings; choose skewed, natural or given")
    clients = setting.of if isinstance(setting, Iid) else getattr(setting, "clients", [])
    if strange := [client for client in clients if client not in CLIENTS]:
        raise ValueError(f"settings.{name}: unknown client {strange[0]!r}; known: {', '.join(CLIENTS)}")
    for client in clients:
        source = next((source for source, one in CLIENT_OF.items() if one == client), "qmsum")
        if source not in {data.source for data in own}:
            raise ValueError(f"settings.{name}.data: client {client} needs {source}; add its data set")
    if not getattr(params.setting_of(name), "clients", ()):
        raise ValueError(f"settings.{name}.clients: is empty, and no own clients join them; add one")


def _run(params: Params, name: str) -> None:
    run, where = params.runs[name], f"runs.{name}"
    if run.setting not in params.settings:
        known = ", ".join(params.settings)
        raise ValueError(f"{where}.setting: no setting {run.setting!r}; known: {known}")
    data, setting = params.data_of(name), params.setting_of(run.setting)
    there = data.seeds or params.seeds
    if strange := sorted(set(run.seeds or ()) - set(there)):
        raise ValueError(f"{where}.seeds: {strange[0]} is none of its data set's or the file's seeds")
    _backbone(params, name, data)
    clients = [] if isinstance(setting, Skewed | Natural) else list(getattr(setting, "clients", ()))
    if absent := [client for client in run.late if client not in clients]:
        raise ValueError(f"{where}.late: setting {run.setting} has no client {absent[0]!r}")
    if run.late and not set(clients) - set(run.late):
        raise ValueError(f"{where}.late: leaves no client to begin with; leave one out")
    training = params.training_of(name)
    drawn = training.clients_per_round or math.inf
    check_rules(where, training, min(drawn, len(clients) or math.inf))
    poisoned = [] if training.faults is None else sorted(set(training.faults.poisoned) - set(clients))
    if clients and poisoned:
        raise ValueError(f"{where}: faults.poisoned: setting {run.setting} has no client {poisoned[0]!r}")
    if run.knobs.get("teacher") in ("initial", "others") and (run.late or drawn < (len(clients) or math.inf)):
        raise ValueError(f"{where}: teacher: initial and others need every client in every round")


def _backbone(params: Params, name: str, data: Data) -> None:
    """Check that a run's backbone can do its task, and has the parts that the run names."""
    run, where, backbone = params.runs[name], f"runs.{name}", params.backbone_of(name)
    task = load_task(TASKS[data.task])
    known = PRESETS if writes(task) else ENCODERS
    if backbone not in known:
        names = ", ".join(sorted(known))
        raise ValueError(f"{where}.backbone: {backbone!r} cannot {data.task}; known: {names}")
    of_encoders: Json = {"frozen": run.frozen or data.frozen, "layers": run.layers}
    of_writers: Json = {"adapted_layers": run.adapted_layers, "dropout": run.dropout or None}
    of_writers["adapted_positions"] = None if run.adapted_positions == "targets" else run.adapted_positions
    for key, value in (of_encoders if writes(task) else of_writers).items():
        if value is not None:
            raise ValueError(
                f"{where}.{key}: {backbone} is {'no encoder' if writes(task) else 'an encoder'}; remove it"
            )
    if run.frozen is not None:
        try:
            FrozenPart.parse(run.frozen)
        except ValueError as error:
            raise ValueError(f"{where}.frozen: {error}") from None
    above = run.above or params.above
    if above == "layers" and (run.size or params.size):
        raise ValueError(f"{where}.size: is of bottleneck and lora alone; remove it")
    if not writes(task) and above in ("bottleneck", "lora") and not (run.size or params.size):
        raise ValueError(f"{where}.size: is missing, and {above} needs one")
    if run.dropout and above == "lora":
        raise ValueError(f"{where}.dropout: lora has none; set above: bottleneck for this run, or dropout: 0")


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


def _lists(params: Params) -> None:
    """Check the lists that DVC needs of what the tables use."""
    used = {"sources": {data.source for data in params.data.values()}}
    used["backbones"] = {str(params.backbone_of(name)) for name in params.runs}
    for key, names in used.items():
        if set(getattr(params, key)) != names:
            raise ValueError(f"{key}: must name those that are used: {', '.join(sorted(names))}")
    if params.weights is not None and (len(params.backbones) > 1 or PRESETS[params.backbones[0]].origin != "hub"):
        raise ValueError(f"weights: {params.backbones[0]} does not come from the model hub; remove it")


def _own_clients(params: Params) -> None:
    for name, client in params.own.items():
        if name in CLIENTS or not is_client_name(name):
            raise ValueError(f"own.{name}: is taken or has a dot; choose another name")
        if not client.path.is_relative_to(OWN) or ".." in client.path.parts:
            raise ValueError(f"own.{name}: {client.path} is not inside {OWN}; put it there")


def _seeds(params: Params) -> None:
    every = {*params.seeds, *(seed for data in params.data.values() for seed in data.seeds or ())}
    for key, seeds in (("folds", params.folds), ("keep_rounds", params.keep_rounds)):
        if strange := sorted(set(seeds) - every):
            raise ValueError(f"{key}: {strange[0]}: is none of the file's seeds")
    if not params.tune.searches:
        return
    if params.tune.seed in every:
        raise ValueError(f"tune.seed: {params.tune.seed} is a seed that tables report; choose another")
    for name, search in params.tune.searches.items():
        for key, run in search.chooses.items():
            if run not in params.runs:
                raise ValueError(f"tune.searches.{name}.chooses.{key}: no run {run!r}; correct it")


def _decoding(params: Params) -> None:
    longest = {"max_tokens": params.max_tokens} | {f"data.{n}.max_tokens": d.max_tokens for n, d in params.data.items()}
    longest |= {f"settings.{n}.max_tokens": getattr(s, "max_tokens", None) for n, s in params.settings.items()}
    for where, most in longest.items():
        if most is not None and params.min_tokens > most:
            raise ValueError(f"min_tokens: {params.min_tokens} is above {where}: {most}")
    if params.beams == 1 and params.length_penalty != 1.0:
        raise ValueError("length_penalty: is of beam search; set beams above 1, or length_penalty: 1.0")


def unshown(params: Params) -> dict[str, str]:
    """Run of this scale that no section of the page of tasks shows -> how to show it."""
    if params.page != "tasks":
        return {}
    methods = params.sections.get("methods", list(params.settings))
    named = {run for section, runs in params.sections.items() if section != "methods" for run in runs}
    found = {}
    for name in params.runs_of_scale:
        setting = params.runs[name].setting
        missing = [] if setting in methods else [f"name {setting} in sections.methods"]
        missing += [] if is_called_after(name, setting) else [f"call it {setting}-…"]
        if missing and name not in named:
            found[name] = f"{' and '.join(missing)}, or name it in another section"
    return found
