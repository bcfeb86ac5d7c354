"""Documents whose numbers come from committed files: `NAME.md.j2` is the template of `NAME.md` in the same folder.

`python -m pipeline docs` renders them. A template names committed files by their paths from the repository's root:

    {% set gain = row(table("reports/tables/comparisons.csv"), metric="average", name="fedavg") %}
    The gain is {{ gain.effect | signed(2) }} ({{ gain | span(2) }}).
"""

import gzip
import importlib
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pipeline.errors import QuorumError
from pipeline.evaluation.intervals import Interval
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.report.page import signed
from pipeline.workspace.files import write_text
from pipeline.workspace.tables import read_table
from pipeline.workspace.words import number

ROOT = Path(__file__).parents[2]
PLACES = ("README.md.j2", "docs/*.md.j2", "benchmarks/*.md.j2", "experiments/*/README.md.j2")


def templates() -> list[Path]:
    """Every document's template."""
    return sorted(path for place in PLACES for path in ROOT.glob(place))


def render(template: Path, root: Path = ROOT) -> str:
    """A document's text. Raises QuorumError if a file or a row is missing, or a name is undefined."""

    def record(path: str) -> Any:
        """The content of a JSON (also compressed) or YAML file."""
        data = (root / path).read_bytes()
        text = (gzip.decompress(data) if path.endswith(".gz") else data).decode()
        return yaml.safe_load(text) if path.endswith(".yaml") else json.loads(text)

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    environment.globals.update(
        table=lambda path: read_table(root / path), record=record, row=row, keys=keys, algorithms=ALGORITHMS
    )
    environment.filters.update(num=num, signed=lambda value, digits: signed(float(value), digits), span=span, grid=grid)
    try:
        return environment.from_string(template.read_text(encoding="utf-8")).render()
    except (OSError, QuorumError, jinja2.TemplateError) as error:
        raise QuorumError(f"{template}: {error}; correct the template") from error


def keys(path: str) -> list[dict[str, str]]:
    """The keys of a record, as `params.yaml` spells them, with their defaults and what the code says of them.

    `path`: a module and its record, as in `pipeline.plan.rows.Run`.
    """
    module, _, name = path.rpartition(".")
    record: type[BaseModel] = getattr(importlib.import_module(module), name)
    about = _attributes(record)
    known = {key: (field, field.description or about.get(key, "")) for key, field in record.model_fields.items()}
    shown = [(field.alias or key, field, text) for key, (field, text) in known.items() if text]
    return [{"key": key, "default": _default(field), "about": text} for key, field, text in shown]


def _attributes(record: type[BaseModel]) -> dict[str, str]:
    """Field -> what the docstring of its record, or of a base, says below `Attributes:`."""
    found: dict[str, str] = {}
    for own in reversed(record.__mro__):
        text = inspect.cleandoc(own.__doc__ or "").partition("Attributes:\n")[2]
        for names, about in re.findall(r"^ {4}([\w, ]+): (.+(?:\n {8}.+)*)", text, re.MULTILINE):
            found |= dict.fromkeys(names.split(", "), " ".join(about.split()))
    return found


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or value in ({}, []) or isinstance(value, BaseModel) else str(value)


def row(rows: Sequence[Mapping[str, str]], **wanted: str) -> Mapping[str, str]:
    """The one row whose columns have the wanted values. Raises QuorumError if there is none, or more than one."""
    found = [one for one in rows if all(one[name] == value for name, value in wanted.items())]
    if len(found) != 1:
        raise QuorumError(f"{len(found)} rows have {', '.join(f'{name}={value}' for name, value in wanted.items())}")
    return found[0]


def num(value: float | str, digits: int = 0, times: float = 1) -> str:
    """A number, multiplied, as in `1,234.50` or `−0.20`: with a sign only below 0."""
    return number(times * float(value), digits)


def span(interval: Mapping[str, float | str], digits: int, times: float = 1) -> str:
    """The ends `low` and `high` of an interval, multiplied, the lower first, as in `−0.35 … 0.30`."""
    low, high = sorted(times * float(interval[end]) for end in ("low", "high"))
    return Interval(low, low, high).span(digits)


def grid(rows: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table of all columns."""
    head, *lines = (f"| {' | '.join(cells)} |" for cells in [list(rows[0]), *(list(one.values()) for one in rows)])
    return "\n".join([head, "|" + "---|" * len(rows[0]), *lines])


def run(*chosen: Path) -> None:
    """Render these templates, or every one, into their documents."""
    for template in chosen or templates():
        write_text(template.with_suffix(""), render(template))
