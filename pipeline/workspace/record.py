"""The base of records that are read from files, which a person or an earlier stage wrote; reading validates them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError


class Record(BaseModel):
    """A frozen record. Unknown keys and numbers that are not finite are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)


def first_problem(error: ValidationError) -> str:
    """The most helpful of a validation's errors, as one line that begins with the key."""
    problems = error.errors()
    # A misspelt key is both unknown and missing; the name that was written helps more.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    place = problem["loc"]
    if place[:1] == ("settings",):  # pydantic adds the setting's kind after its name
        place = place[:2] + place[3:]
    where = ".".join(map(str, place))
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown key"
    if problem["type"] == "missing":
        return f"{where}: is missing"
    if problem["type"] == "value_error" and not where:
        return message
    found = f"{problem['input']!r:.60}"
    prefix = f"{where}: " if where else ""
    said = problem["type"] == "value_error" and found in message
    return f"{prefix}{message}" if said else f"{prefix}{message} (found {found})"
