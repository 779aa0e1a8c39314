"""Part of the rim: whether the tables hold all of the log, and whether its server answers, both without asking it."""

import json
import socket
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urlsplit

from agent0.errors import Agent0Error
from agent0.infra.log import server_folder, server_proof
from agent0.infra.storage.sqlite import reading
from agent0.projections.projector import position
from agent0.settings import Settings

PATIENCE_S = 1.0
"""Seconds in which an external server must take a connection, and then greet; else what is on disk is shown."""
NATS_PORT = 4222
_PROJECTIONS = Path(__file__).parents[2] / "projections"


def tables_current(settings: Settings) -> bool:
    """Whether the tables held the whole log when its server ended, and neither was changed since."""
    if settings.nats.url:
        return False
    try:
        noted = json.loads(_note(settings).read_text())
    except (OSError, ValueError):
        return False
    return bool(noted) and noted == _standing(settings)


def note_current(settings: Settings, before: object) -> None:
    """Note that the tables hold the whole log. ``before``: ``event_files`` as they were when the tables were about to
    be carried on; where they grew since, or the server goes on, nothing is noted."""
    folder, path = settings.home / "nats", _note(settings)
    standing = {} if settings.nats.url else _standing(settings)
    if standing and before == event_files(settings):
        path.write_text(json.dumps(standing))
    elif path.exists() and not server_proof.running_pid(folder):
        path.unlink(missing_ok=True)


def event_files(settings: Settings) -> object:
    """What the log's events lie in, as it is now."""
    return server_folder.event_files(settings.home / "nats")


def server_answers(settings: Settings) -> bool:
    """Whether the log's server would answer soon: a dead one is started again, one that hangs is not waited for."""
    if settings.nats.url:
        greets = not settings.nats.tls_ca  # over TLS the first word may be ours
        return any(_reachable(url.strip(), greets) for url in settings.nats.url.split(","))
    folder = settings.home / "nats"
    return not server_proof.running_pid(folder) or server_proof.greets(folder)


def _reachable(url: str, greets: bool) -> bool:
    """Whether a server takes the connection, and greets as NATS does at once where it must speak first."""
    parts = urlsplit(url if "//" in url else f"//{url}")
    try:
        address = parts.hostname or "127.0.0.1", parts.port or NATS_PORT
        with socket.create_connection(address, PATIENCE_S) as link:
            return parts.scheme in ("tls", "ws", "wss") or not greets or link.recv(4) != b""
    except (OSError, ValueError):
        return False


def _note(settings: Settings) -> Path:
    return settings.home / "tables" / "current.json"


def _standing(settings: Settings) -> dict[str, object]:
    """The log's files, the tables and the code that makes them; empty where the log may be written to."""
    rest, view = server_folder.at_rest(settings.home / "nats"), settings.home / "tables" / "view.db"
    if not rest or not view.exists():
        return {}
    try:
        with reading(view) as db:
            current = position(db)
    except Agent0Error:
        return {}
    sources = [[path.name, path.stat().st_mtime_ns] for path in sorted(_PROJECTIONS.glob("*.py"))]
    plugins = sorted(f"{plugin.name} {plugin.value}" for plugin in entry_points(group="agent0.plugins"))
    return {
        "log": rest,
        "view": str(view.resolve()),
        "seq": current.seq,
        "event": current.event,
        "code": sources,
        "plugins": plugins,
        "seals": _size(settings.home / "seals.jsonl"),
    }


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
