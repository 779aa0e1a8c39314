"""Which parts of a container's file system a call does not see: an image has what the packaged allowlists name, and
engines put more into it."""

import os
import sys
from collections.abc import Collection, Mapping

from . import asking

PROGRAMS, PACKAGES = "/usr/bin", "/opt/site"
_OURS = {"bin", "box", "dev", "lib", "lib64", "opt", "proc", "tmp", "usr"}


def _names(folder: str) -> list[str]:
    return sorted(os.listdir(folder))  # noqa: PTH208 (names are all that is wanted)


def inventory() -> dict[str, list[str]]:
    """List the executables and packages that this image has."""
    return {"executables": _names(PROGRAMS), "modules": sorted({_top(n) for n in _names(PACKAGES)})}


def closed(executables: Collection[str], modules: Collection[str]) -> tuple[str, ...]:
    """Paths that are closed to a call which may use these: other executables, other packages, and the folders that the
    engine brought."""
    brought = [f"/{name}" for name in _names("/") if name not in _OURS]
    programs = [f"{PROGRAMS}/{name}" for name in _names(PROGRAMS) if name not in executables]
    packages = [f"{PACKAGES}/{name}" for name in _names(PACKAGES) if _top(name) not in modules]
    return (*brought, *programs, *packages)


def differing(versions: Mapping[str, str]) -> str:
    """Why this image does not do for who has these versions of our packages; empty where it does."""
    names = [name for name, version in versions.items() if asking.version(f"{PACKAGES}/{name}") != version]
    return f"{', '.join(names)} of the image is of another version: build the image again" if names else ""


def forget(modules: Collection[str]) -> None:
    """Say that other packages of the image cannot be imported. Their folders are closed; this is only the message."""
    for name in {_top(entry) for entry in _names(PACKAGES)} - {*modules}:
        sys.modules[name] = None  # type: ignore[assignment]


def _top(name: str) -> str:
    """The package that an entry of the folder belongs to: numpy for numpy.libs."""
    return name.partition(".")[0]
