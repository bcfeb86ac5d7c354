"""federation.yaml: what one site of a federation is told beside params.yaml, which all sites share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from pipeline.clients.setting import NAME
from pipeline.errors import QuorumError
from pipeline.plan.schema import read_yaml
from pipeline.workspace.record import Record, first_problem

SITE = Path("federation.yaml")
Port = Annotated[int, Field(ge=1, le=65535)]
Name = Annotated[str, Field(pattern=NAME)]


class ServerSite(Record):
    """The operator's.

    `run` and `seed`: a run of params.yaml. `host`, `port`: by which nodes reach the proxy; `inner_port`: of Flower's
    SuperLink, on loopback. `organisations`: all that take part; keys/NAME.pub is the key of each.
    """

    kind: Literal["server"]
    run: Name
    seed: int = Field(ge=0)
    host: str
    port: Port
    inner_port: Port
    organisations: list[Name] = Field(min_length=1)


class NodeSite(Record):
    """An organisation's.

    `host`, `port`: the proxy's. `inner_port`: of its own SuperNode, on loopback. `scores`: what may be told of its test
    set, means or nothing.
    """

    kind: Literal["node"]
    run: Name
    seed: int = Field(ge=0)
    host: str
    port: Port
    inner_port: Port
    organisation: Name
    scores: Literal["means", "nothing"] = "nothing"


Site = Annotated[ServerSite | NodeSite, Field(discriminator="kind")]
KEYS, TLS, STATE = Path("federation/keys"), Path("federation/tls"), Path("federation/state")
"""Below a site's folder: SSH keys of organisations, certificates, and what its processes leave."""
ALLOWED = Path("federation/allowed.txt")
"""Of a node: the sha256 of every app that it runs."""


def read_site(path: Path = SITE) -> ServerSite | NodeSite:
    """
    Raises:
        QuorumError: the file is missing, or a key is unknown, missing, of a wrong type or out of range.
    """
    data: dict[str, Any] = read_yaml(path)
    adapter: TypeAdapter[ServerSite | NodeSite] = TypeAdapter(Site)
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        raise QuorumError(f"{path}: {first_problem(error)}; correct it, see docs/operating.md") from None


def socket_path(name: str) -> Path:
    """A Unix socket of a site; its whole path has at most 107 bytes."""
    path = (STATE / f"{name}.sock").resolve()
    if len(str(path).encode()) > 107:
        raise QuorumError(f"{path}: is too long for a Unix socket; work in a folder with a shorter path")
    return path
