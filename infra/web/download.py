"""Files from the internet, whole or not at all: known by their sha256 before they are asked for, bounded in size, and
written in one step."""

import gzip
import hashlib
import os
import tempfile
import zlib
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx

from agent0.errors import DependencyError, OperationError

LARGEST, MOST_REDIRECTS, TIMEOUT_S = 64 << 20, 5, 60.0


def fetched(url: str, sha256: str) -> str:
    """The text behind ``url``, unpacked where its name ends in ``.gz``.

    Raises:
        DependencyError: it cannot be had: no network, no such file, a body that was cut off.
        OperationError: it is another file than the one whose ``sha256`` was given, too large, or no text.
    """
    data = fetched_bytes(url, sha256)
    try:
        return (gzip.decompress(data) if urlsplit(url).path.endswith(".gz") else data).decode("utf-8")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise OperationError(f"{url} cannot be read.", f"{type(error).__name__}: {error}.") from error


def fetched_bytes(url: str, sha256: str) -> bytes:
    """What is behind ``url``. Errors as for ``fetched``."""
    data = _body(url)
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        why = f"Its sha256 is {actual}, not {sha256}: it was changed, or something stands between."
        raise OperationError(f"{url} is not the file that is meant.", why, "Nothing was written.")
    return data


def page(url: str, media: str) -> str | None:
    """The text that a server has at ``url`` in the form ``media``; None where it says that there is none.

    Raises:
        DependencyError, OperationError: it cannot be had, or is no text.
    """
    try:
        return _body(url, media).decode("utf-8")
    except _AbsentError:
        return None
    except ValueError as error:
        raise OperationError(f"{url} cannot be read.", "It is no text.") from error


class _AbsentError(DependencyError):
    """The server answered that there is nothing at the address."""


def _body(url: str, media: str = "*/*") -> bytes:
    fix = "Check the network, or fetch where there is one and copy the folder."
    try:
        with httpx.Client(timeout=TIMEOUT_S) as client:
            for _ in range(MOST_REDIRECTS + 1):
                answer = _answer(client, url, media)
                if isinstance(answer, bytes):
                    return answer
                url = _onward(url, answer)
    except httpx.HTTPError as error:
        raise DependencyError(url, f"{type(error).__name__}: {error}.", fix) from error
    raise DependencyError(url, f"More than {MOST_REDIRECTS} redirects.", fix)


def _answer(client: httpx.Client, url: str, media: str) -> bytes | str:
    """The body, or where it is said to be instead."""
    out = bytearray()
    with client.stream("GET", url, headers={"accept-encoding": "identity", "accept": media}) as response:
        if response.is_redirect:
            return str(response.headers.get("location", ""))
        if response.status_code in (httpx.codes.NOT_FOUND, httpx.codes.GONE):
            raise _AbsentError(url, f"The server answered {response.status_code}.", "It may have moved.")
        if response.status_code != httpx.codes.OK:
            raise DependencyError(url, f"The server answered {response.status_code}.", "It may have moved.")
        for piece in response.iter_bytes():
            out += piece
            if len(out) > LARGEST:
                raise OperationError(f"{url} is too large.", f"More than {LARGEST >> 20} MiB.")
    return bytes(out)


def _onward(url: str, location: str) -> str:
    """The address that a redirect leads to: of the web only, and never from a guarded line to an open one."""
    onward = urljoin(url, location)
    scheme = urlsplit(onward).scheme
    if scheme not in ("http", "https") or (scheme == "http" and urlsplit(url).scheme == "https"):
        raise OperationError(f"{url} leads to {onward[:200]!r}.", "That is no address to follow.")
    return onward


def store(path: Path, text: str) -> None:
    """Write a whole file, or leave what is there.

    Raises:
        DependencyError: the folder cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise DependencyError(f"The folder {path.parent}", f"{error}.", "Name another with --data.") from error
