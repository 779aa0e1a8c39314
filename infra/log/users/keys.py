"""Keys of a log that hosts share: an authority, a certificate for its servers, and a key for each role.

Below the folder that a person names stand ``ca``, which stays where it is, ``server``, which every server gets, and one
folder a role, which the hosts of that role get. Whatever is secret is readable by its owner only.
"""

import ipaddress
import json
import secrets
import shlex
import shutil
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nkeys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agent0.errors import ConfigError
from agent0.infra.log.users.rights import ROLES, keys_of, users
from agent0.infra.storage.files import whole_file

SERVER = "server"
AUTHORITY_DAYS, SERVER_DAYS = 3650, 825
_EARLIER = timedelta(minutes=10)
"""Clocks differ: certificates count from a little before they were made."""
_CONFIG = """\
# A server of Agent0's log: NATS_NAME=nats-1 NATS_STORE=/data nats-server -c {here}/nats-server.conf
# Several servers that hold the log together: nats-cluster.conf, which includes this file.
server_name: $NATS_NAME
listen: "0.0.0.0:4222"
max_payload: 1MB
max_pending: 256MB
write_deadline: "10s"
lame_duck_duration: "30s"
lame_duck_grace_period: "5s"
tls {{ cert_file: {cert}, key_file: {key}, timeout: 5 }}
jetstream {{
  store_dir: $NATS_STORE
  max_memory_store: 256MB
  max_file_store: 128GB
  sync_interval: always
  strict: true
  limits {{ batch {{ max_msgs: 1000, timeout: "10s" }} }}
}}
include "accounts.conf"
"""
_CLUSTER = """\
include "nats-server.conf"
cluster {{
  name: agent0
  listen: "0.0.0.0:6222"
  tls {{ cert_file: {cert}, key_file: {key}, ca_file: {ca}, verify: true, timeout: 5 }}
  routes: {routes}
}}
"""


def make_keys(folder: Path, hosts: Sequence[str], at: str = "") -> None:
    """Make all keys below ``folder``, complete or not at all: servers answer at ``hosts``, names or addresses. ``at``:
    where each host will find the files of its own folder; empty: where they are made.

    Raises:
        ConfigError: the folder has something in it, or a host is none.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        fix = f"Name another folder, or replace keys of this one: agent0 cluster keys {folder} --rotate student"
        raise ConfigError(f"{folder} is not empty.", "Keys that are in use must not be lost.", fix)
    if not hosts:
        fix = "Name each address that clients use: --host nats-1 --host 10.0.0.5"
        raise ConfigError("The servers have no address.", "Their certificate names it.", fix)
    staging = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        staging.mkdir(mode=0o700, parents=True)
        _fill(staging, folder.absolute(), hosts, at)
        staging.replace(folder)
    except OSError as error:
        raise ConfigError(
            f"Keys cannot be written to {folder}.", f"{error.strerror}.", "Name another folder."
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def rotate_keys(folder: Path, names: Collection[str], hosts: Sequence[str] = ()) -> None:
    """Replace the keys of the roles ``names``; ``server`` is the servers' certificate, for ``hosts`` where some are
    named, which routes and every role's ``agent0.env`` then name, too. A role's former key is accepted beside the new
    one until that role's next rotation.

    Raises:
        ConfigError: no such role; no keys below ``folder``, or what is there cannot be read.
    """
    if unknown := sorted(set(names) - {*ROLES, SERVER}):
        raise ConfigError(f"There is no role {unknown[0]!r}.", f"There are {', '.join(ROLES)} and {SERVER}.")
    try:
        if SERVER in names:
            _renew_certificate(folder, hosts)
            _rename_hosts(folder, hosts)
        former = {role: _public(folder / role) for role in ROLES}
        seeds = {role: _seed() for role in ROLES if role in names}
        accepted = keys_of((folder / SERVER / "accounts.conf").read_text(encoding="utf-8"))
        keys = {role: list(dict.fromkeys([former[role], *accepted.get(role, ())])) for role in ROLES}
        keys |= {role: [_public_of(seed), former[role]] for role, seed in seeds.items()}
        _write(folder / SERVER / "accounts.conf", users(keys).encode())  # first: both work while the new one spreads
        for role, seed in seeds.items():
            _write(folder / role / "user.nk", seed)
    except (OSError, ValueError, nkeys.NkeysError) as error:
        what = f"The keys in {folder} cannot be read or written."
        raise ConfigError(what, f"{error}.", "Name the folder that `agent0 cluster keys` made.") from error


def _fill(staging: Path, folder: Path, hosts: Sequence[str], at: str) -> None:
    authority = ec.generate_private_key(ec.SECP256R1())
    certificate = _authority(authority)
    for name in ("ca", SERVER, *ROLES):
        (staging / name).mkdir(mode=0o700)
        _write(staging / name / "ca.pem", _pem(certificate))
    _write(staging / "ca" / "ca.key", _pem_key(authority))
    _certify(staging / SERVER, certificate, authority, hosts)
    here = at or str(folder / SERVER)
    files = {"cert": "server.pem", "key": "server.key", "ca": "ca.pem"}
    paths = {name: json.dumps(f"{here}/{file}", ensure_ascii=False) for name, file in files.items()}
    _write(staging / SERVER / "nats-server.conf", _CONFIG.format(here=here, **paths).encode())
    _write(staging / SERVER / "nats-cluster.conf", _CLUSTER.format(routes=_routes(hosts), **paths).encode())
    keys = {}
    for role in ROLES:
        seed = _seed()
        keys[role] = [_public_of(seed)]
        _write(staging / role / "user.nk", seed)
        _write(staging / role / "agent0.env", _environment(at or str(folder / role), hosts).encode())
    _write(staging / SERVER / "accounts.conf", users(keys).encode())


def _environment(here: str, hosts: Iterable[str]) -> str:
    lines = (
        f"AGENT0_NATS_URL={_urls(hosts)}",
        f"AGENT0_NATS__CREDENTIALS={shlex.quote(f'{here}/user.nk')}",
        f"AGENT0_NATS__TLS_CA={shlex.quote(f'{here}/ca.pem')}",
    )
    return "\n".join((*lines, ""))


def _address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Agent0 log {secrets.token_hex(4)}")])
    public, now = key.public_key(), datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(name, name, public, x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def _certify(
    folder: Path, authority: x509.Certificate, signer: ec.EllipticCurvePrivateKey, hosts: Sequence[str]
) -> None:
    """Write a fresh key and its certificate for ``hosts``."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    public = key.public_key()
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Agent0 log server")])
    builder = (
        x509.CertificateBuilder(authority.subject, subject, public, x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(min(now + timedelta(days=SERVER_DAYS), authority.not_valid_after_utc))
        .add_extension(x509.SubjectAlternativeName(_name(host) for host in hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(issuer, critical=False)
    )
    _write(folder / "server.key", _pem_key(key))
    _write(folder / "server.pem", _pem(builder.sign(signer, hashes.SHA256())))


def _renew_certificate(folder: Path, hosts: Sequence[str]) -> None:
    authority = x509.load_pem_x509_certificate((folder / "ca" / "ca.pem").read_bytes())
    signer = serialization.load_pem_private_key((folder / "ca" / "ca.key").read_bytes(), password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("ca.key is of another kind")
    if not hosts:
        old = x509.load_pem_x509_certificate((folder / SERVER / "server.pem").read_bytes())
        names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = [str(name.value) for name in names]
    _certify(folder / SERVER, authority, signer, hosts)


def _rename_hosts(folder: Path, hosts: Sequence[str]) -> None:
    """Where ``hosts`` are named, servers find one another and clients the servers there."""
    files = {folder / role / "agent0.env": ("AGENT0_NATS_URL=", _urls(hosts)) for role in ROLES}
    files |= {folder / SERVER / "nats-cluster.conf": ("  routes: ", _routes(hosts))}
    for path, (begin, new) in files.items() if hosts else ():
        lines = path.read_text(encoding="utf-8").splitlines()
        lines = [f"{begin}{new}" if line.startswith(begin) else line for line in lines]
        _write(path, "\n".join([*lines, ""]).encode())


def _routes(hosts: Iterable[str]) -> str:
    return json.dumps([f"nats://{_address(host)}:6222" for host in hosts])


def _urls(hosts: Iterable[str]) -> str:
    return ",".join(f"tls://{_address(host)}:4222" for host in hosts)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise ConfigError(f"{host[:80]!r} is no host.", f"{error}.", "Name it as clients do: --host nats-1") from error


def _usage(*, certificates: bool) -> x509.KeyUsage:
    others = dict.fromkeys(
        (*("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), "encipher_only"), False
    )
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        decipher_only=False,
        **others,
    )


def _seed() -> bytes:
    return bytes(nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER))


def _public_of(seed: bytes) -> str:
    return str(nkeys.from_seed(bytearray(seed.strip())).public_key.decode())


def _public(folder: Path) -> str:
    return _public_of((folder / "user.nk").read_bytes())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    none = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, none)


def _write(path: Path, content: bytes) -> None:
    """``path``, whole or as it was, for its owner only."""
    with whole_file(path) as fresh:
        fresh.touch(mode=0o600, exist_ok=False)
        fresh.write_bytes(content)
