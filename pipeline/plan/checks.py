"""params.yaml, read and checked: how its parts must fit together.

Each check raises ValueError with a line that begins with the key.
"""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import ValidationError

from pipeline.clients.setting import Iid, is_client_name
from pipeline.clients.skews import Given, Natural, Skewed
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.dialogues import CLIENT_OF
from pipeline.corpora.documents import Document
from pipeline.corpora.qmsum import DOMAINS
from pipeline.errors import QuorumError
from pipeline.federated.methods import RULES, TURNS, UNITS
from pipeline.federated.tolerance import Tolerance
from pipeline.model.presets import ENCODERS, PRESETS
from pipeline.plan.reading import located, read_scales
from pipeline.plan.schema import Params
from pipeline.tasks import TASKS
from pipeline.tasks.task import load_task, writes
from pipeline.workspace.layout import OWN, PARAMS
from pipeline.workspace.record import Json, first_problem

SOURCE_OF = dict.fromkeys(DOMAINS, "qmsum") | {client: source for source, client in CLIENT_OF.items()}
"""Client by domain -> the published source of its data."""
OF_ONE = ("backbone", "frozen", "rounds", "clients_per_round", "batch_size", "seeds")
"""What a data set may have for its runs, if no setting has it together with another data set."""
OF_SEVERAL_TASKS = ("methods", "natural")  # the sections that have a table for each task


def read_params(path: Path = PARAMS) -> Params:
    """Parse and check params.yaml, at all of its scales: a mistake should not wait until its scale is chosen.

    Raises QuorumError if the file cannot be read, a key is wrong or missing, or two parts do not fit.
    """
    chosen, scales, lines = read_scales(path)
    found: dict[str, Params] = {}
    for scale, content in scales.items():
        try:
            found[scale] = checked(content)
        except ValueError as error:
            problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
            where = "" if scale == chosen else f"at scale {scale}: "
            remedy = "" if ";" in problem else "; correct it"
            raise QuorumError(f"{where}{located(path, lines, problem, scale)}{remedy}") from None
    return found[chosen]


def checked(content: Json) -> Params:
    """The parameters of one scale."""
    params = Params.model_validate(content)
    _data(params)
    for name in params.settings:
        _setting(params, name)
    for name in params.runs:
        _run(params, name)
    for pattern in params.omit:
        if not any(fnmatchcase(name, pattern) for name in params.runs):
            raise ValueError(f"omit: {pattern}: fits no run; correct it")
    _used(params)
    _own_clients(params)
    _seeds(params)
    if params.beams == 1 and params.length_penalty != 1.0:
        raise ValueError("length_penalty: is of beam search; set beams above 1, or length_penalty: 1.0")
    if params.use_stemmer and params.rouge_tokens != "latin":
        raise ValueError("use_stemmer: is of latin words; set rouge_tokens: latin, or use_stemmer: false")
    for section, names in params.sections.items():
        _known(f"sections.{section}", "run or setting", names, {*params.runs, *params.settings})
        tasks = {params.data_of(name).task for name in names if name in params.runs}
        if section not in OF_SEVERAL_TASKS and len(tasks) > 1:
            raise ValueError(f"sections.{section}: has runs of {' and '.join(sorted(tasks))}; give each a section")
    return params


def _known(where: str, what: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: no {what} {name!r}; known: {', '.join(sorted(known))}")


def _data(params: Params) -> None:
    for name, data in params.data.items():
        if data.source in CLIENT_OF and data.query is None:
            raise ValueError(f"data.{name}.query: is missing, and {data.source} has no queries; add one")
        if data.query is not None and data.source not in CLIENT_OF:
            raise ValueError(f"data.{name}.query: {data.source} has queries of its own, or no task for one; remove it")
        if data.file is not None and load_task(TASKS[data.task]).kind is Conversation:
            raise ValueError(f"data.{name}.file: meetings are brought as folders, in `own`")
        if data.file is not None and data.source != name:
            raise ValueError(f"data.{name}.file: set source: {name}")


def _setting(params: Params, name: str) -> None:
    setting, where = params.settings[name], f"settings.{name}"
    _known(f"{where}.data", "data set", setting.data_sets, params.data)
    own = [params.data[one] for one in setting.data_sets]
    if len({data.task for data in own}) > 1:
        raise ValueError(f"{where}.data: are of two tasks; choose data sets of one")
    for key in OF_ONE if len(own) > 1 else ():
        if any(getattr(data, key) is not None for data in own):
            raise ValueError(f"{where}.data: of several data sets none can have its own {key}; set it in runs")
    if isinstance(setting, Skewed | Natural | Given):
        if len(own) > 1:
            raise ValueError(f"{where}.data: kind: {setting.kind} divides one data set; name one")
        return
    if load_task(TASKS[own[0].task]).kind is not Conversation:
        raise ValueError(f"{where}.kind: {setting.kind} is of meetings; choose skewed, natural or given")
    clients = setting.of if isinstance(setting, Iid) else setting.clients
    _known(where, "client", clients, SOURCE_OF)
    for client in clients:
        if SOURCE_OF[client] not in {data.source for data in own}:
            raise ValueError(f"{where}.data: client {client} needs {SOURCE_OF[client]}; add its data set")
    if not getattr(params.setting_of(name), "clients", ()):
        raise ValueError(f"{where}.clients: is empty, and no own clients join them; add one")


def _run(params: Params, name: str) -> None:
    run, where = params.runs[name], f"runs.{name}"
    _known(f"{where}.setting", "setting", [run.setting], params.settings)
    setting = params.setting_of(run.setting)
    if strange := sorted(set(run.seeds or ()) - set(params.data_of(name).seeds or params.seeds)):
        raise ValueError(f"{where}.seeds: {strange[0]} is none of its data set's or the file's seeds")
    _backbone(params, name)
    fitting = {Conversation: TURNS, Document: UNITS}.get(load_task(TASKS[params.data_of(name).task]).kind, {})
    if run.method in RULES and run.method not in fitting:
        there = ", ".join(fitting) or "none"
        raise ValueError(f"{where}.method: {run.method} is no rule of {params.data_of(name).task}; it has {there}")
    if params.min_tokens > (most := params.value_of(name, "max_tokens")):
        raise ValueError(f"min_tokens: {params.min_tokens} is above max_tokens of {where}: {most}")
    clients = [] if isinstance(setting, Skewed | Natural) else list(getattr(setting, "clients", ()))
    _known(f"{where}.late", "client", run.late, clients)
    if run.late and not set(clients) - set(run.late):
        raise ValueError(f"{where}.late: leaves no client to begin with; leave one out")
    training, everyone = params.training_of(name), params.clients_of(name)
    drawn, rules = training.clients_per_round or everyone, training.tolerance or Tolerance()
    if drawn > everyone and isinstance(setting, Skewed | Natural):
        data = setting.data_sets[0]
        of_data = "clients_per_round" not in run.knobs and params.data[data].clients_per_round is not None
        key = f"data.{data}.clients_per_round" if of_data else f"{where}: clients_per_round"
        raise ValueError(f"{key}: {drawn}, but setting {run.setting} has {everyone} clients; lower it")
    if (rules.minimum or 0) > (present := min(drawn, everyone)):
        raise ValueError(f"{where}: tolerance.minimum: {rules.minimum}, but a round has {present} clients; lower it")
    if training.faults is not None and training.faults.silent and rules.deadline is None:
        raise ValueError(f"{where}: faults: some clients never answer; set tolerance.deadline, in seconds")
    if clients and training.faults is not None:
        _known(f"{where}: faults.poisoned", "client", training.faults.poisoned, clients)
    if run.knobs.get("teacher") in ("initial", "others") and (run.late or drawn < everyone):
        raise ValueError(f"{where}: teacher: initial and others need every client in every round")


def _backbone(params: Params, name: str) -> None:
    """Check that a run's backbone can do its task, and has the parts that the run names."""
    run, where, task = params.runs[name], f"runs.{name}", params.data_of(name).task
    backbone, writer = params.value_of(name, "backbone"), writes(load_task(TASKS[task]))
    known = PRESETS if writer else ENCODERS
    if backbone not in known:
        raise ValueError(f"{where}.backbone: {backbone!r} is no backbone for {task}; known: {', '.join(sorted(known))}")
    of_encoders = {"frozen": params.value_of(name, "frozen"), "layers": run.layers}
    of_writers = {"adapted_layers": run.adapted_layers, "dropout": run.dropout}
    of_writers["adapted_positions"] = run.adapted_positions != "targets"
    for key in (key for key, value in (of_encoders if writer else of_writers).items() if value):
        raise ValueError(f"{where}.{key}: {backbone} is {'no encoder' if writer else 'an encoder'}; remove it")
    above, size = (params.value_of(name, key) for key in ("above", "size"))
    if above == "layers" and size:
        raise ValueError(f"{where}.size: is of bottleneck and lora alone; remove it")
    if not writer and above in ("bottleneck", "lora") and not size:
        raise ValueError(f"{where}.size: is missing, and {above} needs one")
    if run.dropout and above == "lora":
        raise ValueError(f"{where}.dropout: lora has none; set above: bottleneck for this run, or dropout: 0")


def _used(params: Params) -> None:
    """Check the lists that DVC needs of what the tables use."""
    used = {"sources": {data.source for data in params.data.values()}}
    used["backbones"] = {str(params.value_of(name, "backbone")) for name in params.runs}
    for key, names in used.items():
        if set(getattr(params, key)) != names:
            raise ValueError(f"{key}: must name those that are used: {', '.join(sorted(names))}")
    origins = {(PRESETS | ENCODERS)[name].origin for name in params.backbones}
    if params.weights is not None and (len(params.backbones) > 1 or origins != {"hub"}):
        raise ValueError(f"weights: {params.backbones[0]} does not come from the model hub; remove it")


def _own_clients(params: Params) -> None:
    for name, client in params.own.items():
        if name in SOURCE_OF or not is_client_name(name):
            raise ValueError(f"own.{name}: is taken or has a dot; choose another name")
        if not client.path.is_relative_to(OWN) or ".." in client.path.parts:
            raise ValueError(f"own.{name}: {client.path} is not inside {OWN}; put it there")
        _known(f"own.{name}.queries", "row of queries", [client.queries] if client.queries else [], params.queries)


def _seeds(params: Params) -> None:
    every = {*params.seeds, *(seed for data in params.data.values() for seed in data.seeds or ())}
    for key, seeds in (("folds", params.folds), ("keep_rounds", params.keep_rounds)):
        if strange := sorted(set(seeds) - every):
            raise ValueError(f"{key}: {strange[0]}: is none of the file's seeds")
    if params.tune.searches and params.tune.seed in every:
        raise ValueError(f"tune.seed: {params.tune.seed} is a seed that tables report; choose another")
    for name, search in params.tune.searches.items():
        for key, run in search.chooses.items():
            _known(f"tune.searches.{name}.chooses.{key}", "run", [run], params.runs)


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
        missing += [] if name.startswith(f"{setting}-") else [f"call it {setting}-…"]
        if missing and name not in named:
            found[name] = f"{' and '.join(missing)}, or name it in another section"
    return found
