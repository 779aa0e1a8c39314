"""Part of the rim: which snapshots of states count here: of the log in use, folded by the code that is installed."""

import hashlib
import sys
from functools import cache
from importlib.metadata import entry_points, version
from pathlib import Path

from agent0.assembly.runtime.plugins import PLUGINS
from agent0.infra.log.event_log import Log
from agent0.infra.log.state_snapshots import Snapshots
from agent0.infra.storage.state_files import StateFiles
from agent0.registry import LOADED
from agent0.settings import Settings

PACKAGE = Path(__file__).parents[2]
_RIM = ("api", "assembly", "cli", "config", "experiments", "handlers", "infra", "projections", "report")
"""Rooms of ``agent0`` that no fold imports."""


def state_snapshots(settings: Settings, log: Log) -> Snapshots:
    """The snapshots below ``settings.home`` of runs in ``log``."""
    return Snapshots(log, StateFiles(settings.home), fold_version(), settings.handlers.snapshot_events)


def fold_version() -> str:
    """A digest of all code that a run's state may depend on: any other may come to another state."""
    plugins = sorted(f"{name}={digest}" for name, digest in LOADED.items())
    return hashlib.sha256("\n".join([_sources(), *plugins]).encode()).hexdigest()


@cache
def _sources() -> str:
    digest = hashlib.sha256(repr((sys.version_info[:2], _packages())).encode())
    folders = [entry for entry in PACKAGE.iterdir() if entry.name not in _RIM]
    for path in sorted(path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*.py"))):
        if path.suffix == ".py":
            digest.update(f"{path.relative_to(PACKAGE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _packages() -> list[str]:
    """Packages of others that register rewards and the like, and the one that reads events."""
    named = {f"{point.dist.name}={point.dist.version}" for point in entry_points(group=PLUGINS) if point.dist}
    return sorted({*named, f"pydantic={version('pydantic')}"})
