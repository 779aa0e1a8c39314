"""The protocol on standard input and output of a container: a greeting, then requests with ids, and their answers in
any order. Both ends are in this file."""

import functools
import hashlib
import os
from typing import Any

from . import frames
from .calling import Ended, Request

Message = tuple[dict[str, Any], list[bytes]]
_FIELDS = ("ended", "rc", "wall_s", "cpu_s", "peak_kib", "seen", "lost", "note", "tier")


_OURS = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


@functools.cache
def version(folder: str = _OURS) -> str:
    """Digest of the modules in ``folder``, this code's own unless named: host and image must have the same."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 (names are all that is wanted)
        if not name.endswith(".py"):
            continue
        with open(os.path.join(folder, name), "rb") as file:  # noqa: PTH118, PTH123
            digest.update(name.encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()[:16]


def asked(number: int, request: Request, root: dict[str, Any]) -> Message:
    """The message of ``request``; ``root`` names executables, modules, what is imported of them beforehand, and the
    versions of those that are ours."""
    header = {"id": number, "kind": request.kind, "wall_s": request.wall_s, "mem_mib": request.mem_mib, "root": root}
    return {**header, "files": list(request.files)}, [request.guest, request.code, *request.files.values()]


def request(header: dict[str, Any], blobs: list[bytes]) -> Request:
    """The other way round.

    Raises:
        KeyError, ValueError: it is malformed.
    """
    guest, code, *contents = blobs
    files = dict(zip(header["files"], contents, strict=True))
    return Request(header["kind"], code, files, float(header["wall_s"]), int(header["mem_mib"]), guest)


def answered(number: int, ended: Ended) -> Message:
    """Make the answer to request ``number`` from how its call ended."""
    header = {"id": number, **{name: getattr(ended, name) for name in _FIELDS}, "files": list(ended.files)}
    return header, [ended.stdout, ended.stderr, *ended.files.values()]


def failed(number: int, why: str) -> Message:
    """The message of a call about which nothing can be said."""
    return {"id": number, "error": why, "files": []}, []


def say(fd: int, header: dict[str, Any], blobs: list[bytes]) -> None:
    """Write the message piece by piece: a copy of everything would count against the container's memory."""
    frames.write(fd, frames.head(header, blobs))
    for blob in blobs:
        frames.write(fd, blob)


def ended(header: dict[str, Any], blobs: list[bytes]) -> Ended:
    """``answered``, the other way round, taken with doubt.

    Raises:
        KeyError, ValueError, TypeError: it is malformed.
    """
    stdout, stderr, *contents = blobs
    out, err = header["seen"]
    return Ended(
        ended=str(header["ended"]),
        rc=None if header["rc"] is None else int(header["rc"]),
        stdout=stdout,
        stderr=stderr,
        seen=(int(out), int(err)),
        wall_s=float(header["wall_s"]),
        cpu_s=float(header["cpu_s"]),
        peak_kib=int(header["peak_kib"]),
        files=dict(zip(map(str, header["files"]), contents, strict=True)),
        lost=int(header["lost"]),
        note=str(header["note"]),
        tier=str(header["tier"]),
    )
