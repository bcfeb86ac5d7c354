"""The base of records that are read from files, which a person or an earlier stage wrote; reading validates them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Strict, ValidationError

from pipeline.workspace.words import nearest

ALIKE = 0.75
"""From this similarity on (difflib's, 0 to 1), a known key is suggested for an unknown one."""

_TYPE = re.compile(r"(constrained-)?(int|str|float)|(literal|function-\w+|nullable)\[.*")  # in pydantic's places
FilePath = Annotated[Path, Strict(False)]  # a path, which a file has as text
Json = dict[str, Any]  # an object of a JSON or YAML file: key -> value
Number = Annotated[int, Strict(False)]  # an integer that is a key, which JSON has as text


class Record(BaseModel):
    """A frozen record. Unknown keys, values of another type, and numbers that are not finite are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False, strict=True)


def first_problem(error: ValidationError, known: Iterable[str] = ()) -> str:
    """The most helpful of a validation's errors, as one line that begins with the key.

    `known`: keys that may be suggested for an unknown one, besides those of all records.
    """
    problems = error.errors()
    # A misspelt key is both unknown and missing; the name that was written helps more.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    place = problem["loc"]
    if place[:1] == ("settings",):  # pydantic adds the setting's kind after its name
        place = place[:2] + place[3:]
    where = ".".join(str(part) for part in place if not _TYPE.fullmatch(str(part)))
    if problem["type"] == "extra_forbidden":
        near = nearest(str(place[-1]), [*known, *_keys(Record)], ALIKE)
        return f"{where}: unknown key" + (f"; did you mean {near}?" if near else "")
    if problem["type"] == "union_tag_invalid":
        where, known_kinds = ".".join(map(str, (*place, "kind"))), problem["ctx"]["expected_tags"].replace("'", "")
        return f"{where}: unknown kind {problem['ctx']['tag']!r}; known: {known_kinds}"
    if problem["type"] == "missing":
        return f"{where}: is missing"
    message = problem["msg"].removeprefix("Value error, ")
    found = problem["input"]
    # A message of ours says what it has found, and a whole record says nothing.
    ours = problem["type"] == "value_error" and (isinstance(found, dict) or repr(found)[:60] in message)
    about = message if ours else f"{message} (found {found!r:.60})"
    return f"{where}: {about}" if where else about


def _keys(kind: type[BaseModel]) -> Iterator[str]:
    """The keys of all records that are derived from one, as files spell them."""
    for own in kind.__subclasses__():
        yield from (field.alias or name for name, field in own.model_fields.items())
        yield from _keys(own)
