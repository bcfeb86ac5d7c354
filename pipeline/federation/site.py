"""federation.yaml: the settings of one site. All sites share params.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from pipeline.clients.setting import NAME
from pipeline.errors import QuorumError
from pipeline.plan.reading import read_plain
from pipeline.workspace.record import Record, first_problem

SITE = Path("federation.yaml")
Port = Annotated[int, Field(ge=1, le=65535)]
Name = Annotated[str, Field(pattern=NAME)]


class _Site(Record):
    """A site's run of params.yaml, where nodes reach the server's proxy, and the port of Flower's part, on loopback."""

    run: Name
    seed: int = Field(ge=0)
    host: str
    port: Port
    inner_port: Port


class ServerSite(_Site):
    """The operator's site. `organisations`: all that take part; keys/NAME.pub is the key of each."""

    kind: Literal["server"]
    organisations: list[Name] = Field(min_length=1)


class NodeSite(_Site):
    """An organisation's site. `scores`: whether the node reports the means of its test set."""

    kind: Literal["node"]
    organisation: Name
    scores: Literal["means", "nothing"] = "nothing"


Site = Annotated[ServerSite | NodeSite, Field(discriminator="kind")]
KEYS, TLS, STATE = Path("federation/keys"), Path("federation/tls"), Path("federation/state")
"""Relative to a site's folder: the organisations' SSH keys, the certificates, and the logs and sockets of processes."""
ALLOWED = Path("federation/allowed.txt")  # on a node: the sha256 of every Flower app that it runs


def read_site(path: Path = SITE) -> ServerSite | NodeSite:
    """Read federation.yaml.

    Raises QuorumError if the file is missing, or a key is unknown, missing, of a wrong type or out of range.
    """
    data, _ = read_plain(path, "write it as docs/operating.md shows, or run from its folder")
    adapter: TypeAdapter[ServerSite | NodeSite] = TypeAdapter(Site)
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        raise QuorumError(f"{path}: {first_problem(error)}; correct it, see docs/operating.md") from None


def socket_path(name: str) -> Path:
    """The absolute path of a site's Unix socket.

    Raises QuorumError if it has more than 107 bytes, the system's limit.
    """
    path = (STATE / f"{name}.sock").resolve()
    if len(str(path).encode()) > 107:
        raise QuorumError(f"{path}: is too long for a Unix socket; work in a folder with a shorter path")
    return path


def in_words(scores: Mapping[str, float]) -> str:
    """A node's means over its test set as one line: `rouge1 0.2150, test_loss 3.1000, 6 examples`."""
    if not scores:
        return "nothing"
    means = [f"{name} {value:.4f}" for name, value in scores.items() if name != "examples"]
    return ", ".join([*means, f"{scores['examples']:.0f} examples"] if "examples" in scores else means)
