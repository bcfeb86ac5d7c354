"""The server's TLS certificate, signed by the federation's private authority, and the organisations' key pairs.

Nodes trust that authority and no other. The server identifies an organisation by its public key.
"""

import datetime
import ipaddress
import math
import os
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from pipeline.errors import QuorumError
from pipeline.federation.site import KEYS, TLS
from pipeline.workspace.files import write_bytes

SERVER_DAYS, AUTHORITY_DAYS = 90, 3650  # how long a certificate is valid
AUTHORITY, AUTHORITY_KEY = TLS / "ca.crt", TLS / "ca.key"
SERVER, SERVER_KEY = TLS / "server.crt", TLS / "server.key"
Key = ec.EllipticCurvePrivateKey
CURVE, PEM = ec.SECP384R1(), serialization.Encoding.PEM


def make_authority() -> None:
    """Write the authority's key and its certificate, which every node gets. Do nothing if both exist."""
    if AUTHORITY.is_file() and AUTHORITY_KEY.is_file():
        return
    key, name = ec.generate_private_key(CURVE), x509.Name.from_rfc4514_string("CN=Quorum federation")
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    extensions = {usage: True, x509.BasicConstraints(ca=True, path_length=0): True}
    _write_key(AUTHORITY_KEY, key, serialization.PrivateFormat.PKCS8)
    write_bytes(AUTHORITY, _certificate(name, key, name, key, AUTHORITY_DAYS, extensions))


def make_server_certificate(host: str, days: int = SERVER_DAYS) -> None:
    """Write a new key and certificate for the server, which nodes reach by `host`, a name or an address.

    Nodes need nothing new, since the authority stays the same.

    Raises QuorumError if the authority's key is missing.
    """
    if not AUTHORITY_KEY.is_file():
        raise QuorumError(f"{AUTHORITY_KEY}: is missing; run `python -m pipeline federation certificates` first")
    issuer = x509.load_pem_x509_certificate(AUTHORITY.read_bytes()).subject
    signer = serialization.load_pem_private_key(AUTHORITY_KEY.read_bytes(), None)
    assert isinstance(signer, Key)
    key = ec.generate_private_key(CURVE)
    extensions: dict[x509.ExtensionType, bool] = {
        x509.SubjectAlternativeName(_names(host)): False,
        x509.BasicConstraints(ca=False, path_length=None): True,
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]): False,
    }
    _write_key(SERVER_KEY, key, serialization.PrivateFormat.PKCS8)
    write_bytes(
        SERVER, _certificate(x509.Name.from_rfc4514_string(f"CN={host}"), key, issuer, signer, days, extensions)
    )


def make_node_key(organisation: str) -> None:
    """Write an organisation's key pair, unless it exists. The server's operator needs the public half."""
    private = KEYS / organisation
    if private.is_file():
        return
    key = ec.generate_private_key(CURVE)
    _write_key(private, key, serialization.PrivateFormat.OpenSSH)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    write_bytes(KEYS / f"{organisation}.pub", public + b"\n")


def days_left(certificate: Path = SERVER) -> int:
    """Days until a certificate expires, rounded up: 0 or less once it has expired."""
    until = x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    return math.ceil((until - datetime.datetime.now(datetime.UTC)) / datetime.timedelta(days=1))


def _certificate(
    subject: x509.Name,
    key: Key,
    issuer: x509.Name,
    signer: Key,
    days: int,
    extensions: Mapping[x509.ExtensionType, bool],
) -> bytes:
    """A signed certificate, valid from now for some days; `extensions`: whether each is critical."""
    now = datetime.datetime.now(datetime.UTC)
    begin, end = now - datetime.timedelta(minutes=5), now + datetime.timedelta(days=days)  # clocks differ
    built = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    built = built.serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end)
    for extension, critical in extensions.items():
        built = built.add_extension(extension, critical)
    return built.sign(signer, hashes.SHA384()).public_bytes(PEM)


def _names(host: str) -> list[x509.GeneralName]:
    """The names that the certificate covers: the one that nodes use, and those that the proxy on this machine uses."""
    found: list[x509.GeneralName] = []
    for name in dict.fromkeys((host, "127.0.0.1", "localhost")):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found


def _write_key(path: Path, key: Key, form: serialization.PrivateFormat) -> None:
    """Write an unencrypted private key."""
    write_private(path, key.private_bytes(PEM, form, serialization.NoEncryption()))


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    before = os.umask(0o077)
    try:
        write_bytes(path, content)
    finally:
        os.umask(before)
