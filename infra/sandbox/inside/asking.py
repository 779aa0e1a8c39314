"""The protocol on standard input and output of a container: a greeting, then requests with ids, and their answers in
any order. Both ends are in this file, with what the greeting says of the image and what a call sees of it: an image has
what the packaged allowlists name, and engines put more into it."""

import functools
import hashlib
import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from . import frames
from .calling import Ended, Request, reported

Message = tuple[Mapping[str, object], list[bytes]]
PROGRAMS, PACKAGES = "/usr/bin", "/opt/site"
_OURS = {"bin", "box", "dev", "lib", "lib64", "opt", "proc", "tmp", "usr"}
_FIELDS = ("ended", "rc", "wall_s", "cpu_s", "peak_kib", "output_bytes", "lost", "note", "tier")


_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


@functools.cache
def version(folder: str = _HERE) -> str:
    """Digest of the modules in ``folder``, this code's own unless named: host and image must have the same."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 (names are all that is wanted)
        if not name.endswith(".py"):
            continue
        with open(os.path.join(folder, name), "rb") as file:  # noqa: PTH118, PTH123
            digest.update(name.encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()[:16]


class ImageRoot(TypedDict):
    """What a call may use of an image: executables, modules, what is imported of them beforehand, and the versions of
    those that are ours."""

    executables: list[str]
    modules: list[str]
    preloaded: list[str]
    versions: dict[str, str]


@dataclass(frozen=True)
class NumberedRequest:
    """A request, its number, and what it may use."""

    id: int
    request: Request
    root: ImageRoot


def greeting() -> Message:
    """Make the first message of an image: its version and what it has."""
    return {"ready": True, "version": version(), **inventory()}, []


def inventory_in(header: dict[str, Any]) -> dict[str, list[str]]:
    """What the image behind the greeting ``header`` has.

    Raises:
        KeyError, ValueError: it is malformed, or of another version.
    """
    if not header["ready"] or header["version"] != version():
        raise ValueError("it is of another version: build the image again")
    return {name: header[name] for name in ("executables", "modules")}


def message_of(number: int, request: Request, root: ImageRoot) -> Message:
    """The message of ``request``, which may use ``root``."""
    header = {"id": number, "kind": request.kind, "wall_s": request.wall_s, "mem_mib": request.mem_mib, "root": root}
    return {**header, "files": list(request.files)}, [request.guest, request.code, *request.files.values()]


def call(header: dict[str, Any], blobs: list[bytes]) -> NumberedRequest:
    """``message_of``, the other way round.

    Raises:
        KeyError, ValueError: it is malformed.
    """
    guest, code, *contents = blobs
    files = dict(zip(header["files"], contents, strict=True))
    request = Request(header["kind"], code, files, float(header["wall_s"]), int(header["mem_mib"]), guest)
    return NumberedRequest(header["id"], request, header["root"])


def answered(number: int, ended: Ended) -> Message:
    """Make the answer to request ``number`` from how its call ended."""
    header = {"id": number, **{name: getattr(ended, name) for name in _FIELDS}, "files": list(ended.files)}
    return header, [ended.stdout, ended.stderr, *ended.files.values()]


def failed(number: int, why: str) -> Message:
    """The message of a call about which nothing can be said."""
    return {"id": number, "error": why, "files": []}, []


def say(fd: int, header: Mapping[str, object], blobs: list[bytes]) -> None:
    """Write the message piece by piece: a copy of everything would count against the container's memory."""
    frames.write(fd, frames.head(header, blobs))
    for blob in blobs:
        frames.write(fd, blob)


def ended(header: dict[str, Any], blobs: list[bytes]) -> Ended:
    """``answered``, the other way round; errors as for ``reported``."""
    stdout, stderr, *contents = blobs
    out, err = header["output_bytes"]
    ended = reported(header, contents)
    ended.stdout, ended.stderr, ended.output_bytes = stdout, stderr, (int(out), int(err))
    ended.note = str(header["note"])
    return ended


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
    names = [name for name, digest in versions.items() if version(f"{PACKAGES}/{name}") != digest]
    return f"{', '.join(names)} of the image is of another version: build the image again" if names else ""


def forget(modules: Collection[str]) -> None:
    """Say that other packages of the image cannot be imported. Their folders are closed; this is only the message."""
    for name in {_top(entry) for entry in _names(PACKAGES)} - {*modules}:
        sys.modules[name] = None  # type: ignore[assignment]


def _top(name: str) -> str:
    """The package that an entry of the folder belongs to: numpy for numpy.libs."""
    return name.partition(".")[0]
