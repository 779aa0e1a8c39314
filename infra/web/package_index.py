"""A package index as pip reads it (the simple API, in JSON): which source distributions there are, and their bytes."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import Version

from agent0.errors import ConfigError, NotFoundError, OperationError
from agent0.infra.web.download import fetched_bytes, page

PYPI = "https://pypi.org/simple"
MEDIA = "application/vnd.pypi.simple.v1+json"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class SourceDistribution:
    """A release as its author uploaded it: a ``.tar.gz`` at ``url`` with this ``sha256``."""

    package: str
    version: Version
    url: str
    sha256: str


class PackageIndex:
    """An index at ``url``, whose answers say what a file's digest is: so it is asked over HTTPS, or on this machine."""

    def __init__(self, url: str = PYPI) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise ConfigError(f"{url[:200]!r} is no address of a package index.", "", f"One is {PYPI}.")
        self.url = url.rstrip("/")

    def releases(self, package: str) -> list[SourceDistribution]:
        """Source distributions of ``package``, oldest first, without pre-releases and those that were withdrawn.

        Raises:
            NotFoundError: the index does not know the package.
            DependencyError, OperationError: it cannot be asked, or its answer is no such list.
        """
        address = f"{self.url}/{canonicalize_name(package)}/"
        text = page(address, MEDIA)
        if text is None:
            raise NotFoundError(f"{self.url} has no package {package}.")
        try:
            files = json.loads(text)["files"]
            releases = {entry.version: entry for file in files for entry in _release(address, package, file)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = "It answers in another form than the JSON of PEP 691."
            raise OperationError(f"The index at {self.url} cannot be read.", why) from error
        return [releases[version] for version in sorted(releases)]

    def read(self, release: SourceDistribution) -> bytes:
        """The bytes of ``release``. Errors as for ``fetched_bytes``."""
        return fetched_bytes(release.url, release.sha256)


def _release(address: str, package: str, file: dict[str, Any]) -> Iterator[SourceDistribution]:
    """The source distribution that ``file`` of an index is, if it is one to take."""
    try:
        name, version = parse_sdist_filename(file["filename"])
    except InvalidSdistFilename:
        return
    digest = file["hashes"].get("sha256", "")
    usable = file["filename"].endswith(".tar.gz") and not file.get("yanked") and not version.is_prerelease
    if usable and name == canonicalize_name(package) and _DIGEST.fullmatch(digest):
        yield SourceDistribution(package, version, urljoin(address, file["url"]), digest)
