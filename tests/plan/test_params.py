"""params.yaml: how it is read, the line of every mistake, and whose value a run has."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from conftest import EXPERIMENTS
from dvc.utils.hydra import apply_overrides
from planned import GONE, changed, params_of, written
from workspaces import DOMAINS

from pipeline.clients.setting import Share
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Knobs
from pipeline.federated.algorithms import fedselectkd
from pipeline.federated.objectives.threshold import Threshold
from pipeline.plan.checks import read_params
from pipeline.plan.reading import read_plain, read_scales
from pipeline.plan.resolve import resolve
from pipeline.plan.training import train_order

FEDAVG = {"setting": "domains", "method": "AdaFedAvg"}
EVEN = {"data": "qmsum", "kind": "balanced", "clients": ["Academic"], "counts": {"train": 8, "val": 4, "test": 4}}
IID = {"data": "qmsum", "kind": "iid", "clients": ["First", "Second"], "of": ["Academic"]}
SKEWED = {"kind": "skewed", "data": "news", "clients": 3}
MINE = {"task": "classify", "source": "mine", "file": "data/own/mine.csv"}
SEARCH = {"grid": [0.1, 0.2], "chooses": {"rates.own": "single"}}

FILE: list[tuple[dict[str, Any], str]] = [
    ({"taau": 4}, "taau: unknown key; did you mean tau?"),
    ({"seeds": [1, 1]}, "seeds: seeds must be distinct and not negative"),
    ({"seeds": [True]}, "seeds.0: Input should be a valid integer (found True)"),
    ({"rounds": 10**12}, "rounds: Input should be less than or equal to 1000000"),
    ({"threads": 1024}, "threads: Input should be less than or equal to 256"),
    ({"rounds": GONE}, "rounds: is missing"),
    ({"clip_norm": float("inf")}, "clip_norm: Input should be a finite number"),
    ({"tau": "q2"}, "tau: is a number of nats, at least 0 and finite, or a quantile between 0 and 1"),
    ({"faults": {"dropout": 0.2}}, "faults: some clients never answer; set tolerance.deadline, in seconds"),
    ({"faults": {"poisoned": {"Nobody": "nan"}}}, "faults.poisoned: no client 'Nobody'; known: Academic"),
    ({"tolerance": {"minimum": 4}}, "tolerance.minimum: 4, but a round has 3 clients; lower it"),
    ({"sources": ["qmsum"]}, "sources: must name those that are used: 20news, qmsum, samsum"),
    ({"backbones": ["tiny-llama"]}, "backbones: must name those that are used: tiny-bert, tiny-llama"),
    ({"backbone": "gpt"}, "runs.zeroshot.backbone: 'gpt' is no backbone for summarize; known: "),
    ({"weights": "weights/bart"}, "weights: tiny-llama does not come from the model hub; remove it"),
    ({"folds": {7: "first"}}, "folds: 7: is none of the file's seeds"),
    ({"tune": {"seed": 1, "searches": {"x": SEARCH}}}, "tune.seed: 1 is a seed that tables report; choose another"),
    ({"tune.searches": {"x": SEARCH | {"chooses": {"tau": "gone"}}}}, "tune.searches.x.chooses.tau: no run 'gone'"),
    ({"tune.searches": {"x": SEARCH | {"grid": [0.2, 0.1]}}}, "tune.searches.x.grid: needs values from 0 on"),
    ({"data.qmsum.max_tokens": 5, "min_tokens": 9}, "min_tokens: 9 is above max_tokens of runs.zeroshot: 5"),
    ({"length_penalty": 2.0}, "length_penalty: is of beam search; set beams above 1, or length_penalty: 1.0"),
    ({"own": {"Academic": {"folder": "data/own/x"}}}, "own.Academic: is taken or has a dot; choose another name"),
    ({"own": {"Clinic": {}}}, "own.Clinic: needs a folder of meetings or a file of texts"),
    ({"own": {"Clinic": {"folder": "data/own/../x"}}}, "own.Clinic: data/own/../x is not inside data/own"),
    ({"own": {"K": {"folder": "data/own/k", "queries": "de"}}}, "own.K.queries: no row of queries 'de'; known: "),
    ({"queries": {"de": {"merge": "Fasse zusammen."}}}, "queries.de.merge: String should match pattern"),
    ({"queries": {"de": {"whole": " "}}}, "queries.de.whole: String should match pattern"),
    ({"omit": ["none-*"]}, "omit: none-*: fits no run"),
    ({"rouge_tokens": "unicode", "use_stemmer": True}, "use_stemmer: is of latin words; set rouge_tokens: latin"),
    ({"sections": {"main": ["gone"]}}, "sections.main: no run or setting 'gone'"),
    ({"sections": {"main": ["single", "news"]}}, "sections.main: has runs of classify and summarize; give each a"),
    ({"source_tokens": GONE}, "data.qmsum.source_tokens: is missing; add it here or in `scales`"),
    ({"rates.local": GONE}, "rates.local: is missing, and runs.fedkd needs it; add it"),
]
DATA: list[tuple[dict[str, Any], str]] = [
    ({"data.qmsum.task": "translate"}, "data.qmsum.task: unknown task 'translate'; known: summarize"),
    ({"data.qmsum.source": "cnn"}, "data.qmsum: source: unknown source 'cnn'; known: qmsum, samsum"),
    ({"data.samsum.query": GONE}, "data.samsum.query: is missing, and samsum has no queries; add one"),
    ({"data.qmsum.query": "What?"}, "data.qmsum.query: qmsum has queries of its own, or no task for one; remove it"),
    ({"data.news.frozen": "e,9-"}, "data.news.frozen: 'e,9-': write none, e, e,0 or e,0-K"),
    ({"data.news.knobs": {"FedMagic": {}}}, "data.news.knobs.FedMagic.[key]: unknown method 'FedMagic'"),
    ({"data.mine": MINE | {"file": "mine.csv"}}, "data.mine: file: mine.csv: is not in data/own/, where DVC looks"),
    ({"data.mine": MINE | {"source": "20news"}}, "data.mine.file: set source: mine"),
    ({"data.samsum.rounds": 2}, "settings.both.data: of several data sets none can have its own rounds; set it"),
    ({"data.mine": MINE | {"task": "summarize"}}, "data.mine.file: meetings are brought as folders, in `own`"),
]
SETTINGS: list[tuple[Any, str]] = [
    ({"clients": ["Mars"]}, "settings.x: no client 'Mars'; known: AMI"),
    ({"clients": ["Product", "Product"]}, "settings.x: clients: must name each once"),
    ({"clients": ["SAMSum"]}, "settings.x.data: client SAMSum needs samsum; add its data set"),
    ({"data": "gone"}, "settings.x.data: no data set 'gone'; known: news, qmsum, samsum"),
    ({"data": ["qmsum", "news"]}, "settings.x.data: are of two tasks; choose data sets of one"),
    ({"data": "news"}, "settings.x.kind: domains is of meetings; choose skewed, natural or given"),
    ({"kind": "dealt"}, "settings.x.kind: unknown kind 'dealt'; known: domains, iid"),
    ({"only": {"SAMSum": {}}}, "settings.x: only.SAMSum: is no client of the setting"),
    (EVEN | {"counts": {"train": 1, "val": 1}}, "settings.x.counts.test: is missing"),
    (EVEN | {"own": False}, "settings.x.own: unknown key"),
    (IID | {"clients": ["a.b"]}, "settings.x: clients: 'a.b' is taken, or no name"),
    (IID | {"clients": ["a" * 101]}, "is taken, or no name"),
    (SKEWED | {"data": ["qmsum", "samsum"]}, "settings.x.data: kind: skewed divides one data set"),
    (SKEWED | {"spread": True, "alpha": 1.0}, "settings.x: spread: leaves labels"),
    ({"kind": "given", "data": "news", "file": "x.json"}, "settings.x: file: x.json: is not in data"),
]
RUNS: list[tuple[dict[str, Any], str]] = [
    ({"method": "FedMagic"}, "runs.x.method: unknown method 'FedMagic'; known: ZeroShot, LeadTurns"),
    ({"method": "OracleUnits"}, "runs.x.method: OracleUnits is no rule of summarize; it has LeadTurns, RandomTurns"),
    ({"setting": "news", "method": "LeadTurns"}, "runs.x.method: LeadTurns is no rule of classify; it has none"),
    ({"setting": "news", "method": "FedSum"}, "runs.x: FedSum needs states before a head, which classify lacks"),
    ({"setting": "news", "clients_per_round": 99}, "runs.x: clients_per_round: 99, but setting news has"),
    ({"method": "SCAFFOLD", "option": "II"}, "runs.x.option: II: divides by the steps' one learning rate"),
    ({"method": "SCAFFOLD", "option": "II", "client_optimizer": "sgd", "client_schedule": "linear"}, "x.option: II"),
    ({"trunk_rate": 4.0}, "runs.x.trunk_rate: is of heads, and summarize trains none"),
    ({"method": "FedDC", "rounds": 3}, "runs.x.rounds: 3, but FedDC has 2 rounds for each draw of clients"),
    ({"seeds": [5]}, "runs.x.seeds: 5 is none of its data set's or the file's seeds"),
    ({"tau": 3}, "runs.x.tau: unknown key"),
    ({"method": "ZeroShot", "rounds": 3}, "runs.x: ZeroShot trains nothing, so it takes no knobs; remove them"),
    ({"dropout": 0.1}, "runs.x: a run with dropout or adapted prompts has no store; set decode: false"),
    ({"above": "lora", "dropout": 0.1, "decode": False}, "runs.x.dropout: lora has none"),
    ({"rounds_share": 0.5, "rounds": 2}, "runs.x: rounds_share scales the scale's rounds"),
    ({"prolonged": True, "rounds": 2}, "runs.x: rounds: a prolonged run has the scale's rounds plus added_rounds"),
    ({"late": ["Product"]}, "runs.x: late clients join with the added rounds; set prolonged: true"),
    ({"prolonged": True, "late": ["SAMSum"]}, "runs.x.late: no client 'SAMSum'; known: Academic"),
    ({"prolonged": True, "late": DOMAINS}, "runs.x.late: leaves no client to begin with"),
    ({"method": "Krum", "faulty": 1}, "runs.x: Krum needs 5 clients in a round, and 3 take part"),
    ({"method": "FedDC", "rounds": 2, "tolerance": {"minimum": 2}}, "runs.x: tolerance: FedDC needs all clients of a"),
    ({"method": "FedBuff", "buffer": 3, "clients_per_round": 2}, "runs.x: FedBuff needs 3 clients in a round"),
    ({"method": "AdaFedSelectKD", "teacher": "others", "clients_per_round": 2}, "runs.x: teacher: initial and others"),
    ({"frozen": "e,0"}, "runs.x.frozen: tiny-llama is no encoder; remove it"),
    ({"above": "layers", "size": 3}, "runs.x.size: is of bottleneck and lora alone; remove it"),
    ({"setting": "news", "backbone": "tiny-llama"}, "runs.x.backbone: 'tiny-llama' is no backbone for classify"),
    ({"setting": "news", "adapted_layers": 2}, "runs.x.adapted_layers: tiny-bert is an encoder; remove it"),
    ({"setting": "news", "frozen": "e,0-2", "layers": [0]}, "runs.x: frozen: e,0-2, but its encoder has 1 layers"),
    ({"setting": "news", "above": "lora"}, "runs.x.size: is missing, and lora needs one"),
    ({"setting": "news", "method": "AdaFedHardKD"}, "runs.x: AdaFedHardKD distils at nouns and verbs of what is"),
    ({"setting": "news", "method": "AdaSingle"}, "runs.x: AdaSingle evaluates each client's own model, and setting"),
    ({"method": "AdaSingle", "evaluate": "server"}, "runs.x.evaluate: server, but AdaSingle has no server"),
    ({"method": "AdaSingle", "clients_per_round": 2}, "runs.x: late and clients_per_round are of federated methods"),
    ({"client_optimizer": "sgd", "client_optimizer_state": "keep"}, "runs.x.client_optimizer_state: keep: SGD has no"),
]
DOMAIN = {"data": "qmsum", "kind": "domains", "clients": DOMAINS}
ROW: dict[str, Any] = {"rounds": 2, "source_tokens": 99, "settings": {"news": {"clients": 5}}}
SCALES: dict[str, Any] = {"small": ROW, "large": {"rounds": 8, "settings": {"news": {"clients": 9}}}}
SCALED = {"scale": "large", "rounds": None, "settings.news.clients": None, "scales": SCALES}


CASES = [*FILE, *DATA, *(({"settings.x": row if "kind" in row else DOMAIN | row}, said) for row, said in SETTINGS)]
CASES += [({"runs.x": FEDAVG | row}, said) for row, said in RUNS]
UNREADABLE = [
    (b"scale: a\nscale: b", 'line 2: cannot be read: found duplicate key "scale"'),
    (b"scale: yes", "line 1: scale: yes: is not plain; write a decimal number, true, false, or quoted text"),
    (b"scale: a\nrounds: 010", "line 2: rounds: 010: is not plain"),
    (b"scale: a\nrounds: 1_000", "line 2: rounds: 1_000: is not plain"),
    (b"scale: a\nrounds: 2026-01-01", "line 2: rounds: 2026-01-01: is not plain"),
    (b"scale: a\nrounds: " + b"9" * 20, "line 2: rounds: 99999999999999999999: is not plain"),
    (b"scale: a\nx: " + b"[" * 5000 + b"]" * 5000, "cannot be read: has too many levels; shorten it"),
    (b"scale: a\nx: &one 1\ny: *one", "line 3: y: anchors and merge keys are not read"),
    (b"scale: a\nx:\n  <<: {c: 1}", "line 3: x.<<: anchors and merge keys are not read"),
    (b"scale: a\n---\nscale: b", "line 2: cannot be read: but found another document"),
    (b"scale: a\nruns:\n  a/b: {}", "line 3: runs.a/b: is no name; use letters a-z, digits, '.', '_' and '-'"),
    (b"scale: a\nruns: {x: {like: y}}", "line 2: runs.x.like: no other row 'y' in runs; known: none"),
    (b"scale: a\nruns: {x: {like: y}, y: {like: x}}", "line 2: runs.y.like: no other row 'x' in runs"),
    (b"scale: a\nscales: {b: {}}", "line 1: scale: 'a'; known: b; correct it"),
    (b"rounds: 3", "scale: None is no name; correct it"),
    (b"scale: [tour]", "line 1: scale: ['tour'] is no name"),
    (b"a: [", "line 2: cannot be read: "),
    (b"", "has no keys; restore it from git"),
    (b"a: \xff", "is not UTF-8 (byte 3); save it as UTF-8"),
    (b"#" * 1_000_001, "has more than 1,000,000 characters; shorten it"),
    (None, "is missing; run from the repository's root"),
]


@pytest.mark.parametrize(("changes", "message"), CASES, ids=[said[:60] for _, said in CASES])
def test_a_mistake_is_one_line_that_names_the_key(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(QuorumError, match=rf"^.*{re.escape(message)}.*\Z"):
        resolve(read_params(written(tmp_path, changed(**changes))))


def test_an_algorithm_cannot_take_the_name_of_a_knob_of_all_runs() -> None:
    """A run's own value would go to the training, and the algorithm would have its default."""

    class Hyperparameters(Knobs):
        patience: int = 3

    with pytest.raises(QuorumError, match="patience: is a knob of all runs"):
        params_of().hyperparameters_of("fedavg", Hyperparameters)


def test_a_client_has_its_own_share_over_its_settings_over_the_files() -> None:
    """Product has its own number of validation examples, SAMSum the setting's; in `domains` it is the file's."""
    only = {"Product": {"validation_examples": 2}}
    own = {"settings.both.validation_examples": 7, "settings.both.only": only}
    params = params_of(train_fraction=0.5, validation_examples=40, **own)
    for setting, client, count in (("both", "Product", 2), ("both", "SAMSum", 7), ("domains", "Product", 40)):
        found = params.setting_of(setting).share_of(client)
        assert found == Share(train_fraction=0.5, validation_examples=count)


def test_ones_own_client_trains_on_all_that_it_has_unless_its_setting_has_a_share() -> None:
    """The file's share is of published corpora; they weigh alike, an example of half of a corpus for two."""
    own = {"own": {"Clinic": {"folder": "data/own/Clinic"}}, "train_fraction": 0.5}
    joined = params_of(**own).setting_of("domains")
    assert (joined.share_of("Clinic").train_fraction, joined.weights) == (1.0, {"Clinic": 0.5})
    shared = params_of(**own | {"settings.domains.train_fraction": 0.2}).setting_of("domains")
    assert shared.share_of("Clinic").train_fraction == 0.2


def test_ones_own_clients_join_the_settings_that_take_them() -> None:
    own = {name: {"folder": f"data/own/{name}"} for name in ("Clinic", "Bank")}
    params = params_of(own=own, **{"settings.both.own": False})
    assert params.setting_of("domains").clients == [*DOMAINS, "Bank", "Clinic"]
    assert params.setting_of("both").clients == ["Product", "SAMSum"]


@pytest.mark.parametrize(
    ("changes", "alpha"), [({}, 0.3), ({"alpha": 2.0}, 2.0), ({"beta": 5.0}, None), ({"spread": True}, None)]
)
def test_a_skewed_setting_without_a_skew_has_the_files_alpha(changes: dict[str, Any], alpha: float | None) -> None:
    params = params_of(alpha=0.3, **{f"settings.news.{key}": value for key, value in changes.items()})
    assert params.setting_of("news").alpha == alpha


def test_a_hyperparameter_is_the_runs_else_the_data_sets_else_the_files() -> None:
    params = params_of(tau="q0.88", **{"data.qmsum.knobs": {"AdaFedSelectKD": {"lambda": 0.3}}})
    found = [params.hyperparameters_of(name, fedselectkd.Hyperparameters) for name in ("fedselectkd", "tau-2")]
    assert [getattr(one, "tau", None) for one in found] == [Threshold(quantile=0.88), Threshold(2.0)]
    assert [getattr(one, "weight", None) for one in found] == [0.3, 0.5]


def test_late_clients_join_with_the_first_added_round() -> None:
    """Three rounds and two more: the fourth. They are compared at equal rounds, so none stops early."""
    late = {"runs.fedavg.prolonged": True, "runs.fedavg.late": ["Product"]}
    training = train_order(params_of(added_rounds=2, **late), "fedavg").training
    assert (training.joins, training.rounds, training.patience) == ({"Product": 4}, 5, 5)


@pytest.mark.parametrize(("text", "message"), UNREADABLE)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, text: bytes | None, message: str) -> None:
    path = tmp_path / "params.yaml"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(QuorumError, match=rf"^.*{re.escape(f'{path}: {message}')}.*\Z"):
        read_scales(path)


def test_a_mistake_has_the_line_of_its_key(tmp_path: Path) -> None:
    path = written(tmp_path, changed(**{"runs.fedavg.rounds": 0}))
    line = path.read_text(encoding="utf-8").splitlines().index("    rounds: 0") + 1
    with pytest.raises(QuorumError, match=rf"params\.yaml: line {line}: runs\.fedavg\.rounds: Input should be greater"):
        read_params(path)


def test_a_scale_has_the_values_that_the_file_leaves_out(tmp_path: Path) -> None:
    """At any depth; the file's own 300 source tokens are those of every scale."""
    for scale, rounds, clients in (("small", 2, 5), ("large", 8, 9)):
        params = read_params(written(tmp_path, changed(**SCALED | {"scale": scale})))
        assert (params.rounds, params.setting_of("news").clients, params.source_tokens) == (rounds, clients, 300)


def test_a_mistake_in_a_scale_that_is_not_chosen_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, changed(**SCALED | {"scales": SCALES | {"small": ROW | {"rounds": 0}}}))
    with pytest.raises(QuorumError, match=r"at scale small: .*line \d+: rounds: Input should be greater"):
        read_params(path)


def test_a_row_that_is_like_another_has_the_keys_that_it_lacks(tmp_path: Path) -> None:
    """`c` is like `b`, which is like `tau-2`."""
    like = {"runs.b": {"like": "tau-2", "tau": 3.0}, "runs.c": {"like": "b", "lambda": 0.1}}
    runs = read_params(written(tmp_path, changed(**like))).runs
    assert runs["c"].knobs == {"tau": 3.0, "lambda": 0.1}
    assert (runs["c"].setting, runs["c"].decode) == ("domains", False)


@pytest.mark.parametrize("folder", EXPERIMENTS, ids=lambda folder: folder.name)
def test_setting_a_knob_changes_its_line_alone(folder: Path, tmp_path: Path) -> None:
    """As `dvc exp run -S` does, whose grammar has no keys that begin with a digit or hold a dot; about 25 of tables."""
    shipped, path = folder / "params.yaml", tmp_path / "params.yaml"
    before = shipped.read_text(encoding="utf-8").splitlines()
    knobs = dict(leaves(read_plain(shipped)[0]))
    inner = [key for key in knobs if "." in key and not re.search(r"\.\d|\.chooses\.", key)]
    for key in [key for key in knobs if "." not in key] + inner[:: 1 + len(inner) // 25]:
        shutil.copy(shipped, path)
        value = knobs[key]
        other = not value if isinstance(value, bool) else f"{value}x" if isinstance(value, str) else value * 2 + 1
        apply_overrides(path, [f"{key}={json.dumps(other)}"])
        assert dict(leaves(read_plain(path)[0])) == knobs | {key: other}
        after = path.read_text(encoding="utf-8").splitlines()
        lines = [line for line in unified_diff(before, after, n=0, lineterm="") if line[:3] not in ("---", "+++")]
        assert [line[0] for line in lines] == ["@", "-", "+"], lines


def leaves(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, bool | int | float | str]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        elif isinstance(value, bool | int | float | str):
            yield f"{above}{key}", value
