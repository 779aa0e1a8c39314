"""Which releases of which packages tasks are mined from, and which packages are left out."""

import re
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from agent0.errors import ConfigError

BENCHMARKS = frozenset(
    {
        *("astroid", "astropy", "django", "flask", "marshmallow", "matplotlib", "pvlib", "pydicom", "pylint", "pytest"),
        *("pyvista", "requests", "scikit-learn", "seaborn", "sphinx", "sqlfluff", "sympy", "xarray"),
    }
)
"""Packages whose repositories SWE-bench asks about: who is trained on them has seen its answers."""
RUNNER = frozenset({"iniconfig", "packaging", "pluggy", "pygments", "pytest"})
"""Packages that the runner of tests is made of: its own copy would be tested in their place."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_FORM = "Write more-itertools, more-itertools==10.2.0 or more-itertools==10.1.0..10.2.0."


@dataclass(frozen=True)
class PackageRequest:
    """A package by its normal name, and the first and last release that is asked for; None: the newest."""

    name: str
    first: Version | None = None
    last: Version | None = None

    @property
    def text(self) -> str:
        """As a user writes it."""
        if self.first is None:
            return self.name
        return f"{self.name}=={self.first}" + ("" if self.first == self.last else f"..{self.last}")

    def chosen(self, versions: list[Version]) -> list[Version]:
        """Which of ``versions``, oldest first, are mined: those in the range, or the newest and the one before."""
        if self.first is None or self.last is None:
            return versions[-2:]
        return [version for version in versions if self.first <= version <= self.last]


def package_request(text: str) -> PackageRequest:
    """Read ``NAME``, ``NAME==VERSION`` or ``NAME==FIRST..LAST``.

    Raises:
        ConfigError: it is none of these.
    """
    name, _, versions = text.partition("==")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{text[:80]!r} names no package.", "", _FORM)
    first, _, last = versions.partition("..")
    try:
        bounds = [Version(bound) for bound in (first, last or first)] if "==" in text else [None, None]
    except InvalidVersion as error:
        raise ConfigError(f"{text[:80]!r} names no release.", f"{error}.", _FORM) from error
    request = PackageRequest(re.sub(r"[-_.]+", "-", name).lower(), *bounds)
    if request.first is not None and request.last is not None and request.first > request.last:
        raise ConfigError(f"{text[:80]!r} holds no release.", "Its first is newer than its last.", _FORM)
    return request


def refusal(name: str, benchmarks: bool) -> str:
    """Why a package is not mined, empty where it is; ``benchmarks``: those of a benchmark are, too."""
    if name in BENCHMARKS and not benchmarks:
        return "SWE-bench asks about its repository (--with-benchmarks mines it all the same)"
    return "the runner of tests is made of it" if name in RUNNER else ""
