"""The files of a source distribution as a value. Nothing of it is built, imported or written to a disk."""

import io
import lzma
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from functools import cached_property
from pathlib import PurePosixPath

from agent0.errors import OperationError
from agent0.tools.snapshots import MOST_FILES, is_inside

LARGEST, MOST_BYTES, MOST_MEMBERS = 1 << 20, 20 << 20, 20_000
"""Bytes of a file, bytes of a tree, entries of an archive."""
_TESTS = frozenset({"test", "tests", "testing"})
_NO_PACKAGES = frozenset(
    {
        *("benchmark", "benchmarks", "build", "conftest", "dist", "doc", "docs", "example", "examples", "noxfile"),
        *("scripts", "setup", "tasks", "tools", "versioneer"),
    }
)
_TEST_NAME = re.compile(r"(?:test_.*|.*_test|tests?|conftest)\.py")
_UNWANTED = re.compile(r"(?:^|/)(?:\.git|\.github|__pycache__|docs?/_build)/|\.(?:so|pyd|dll|dylib|pyc|whl|exe|jar)$")


@dataclass(frozen=True)
class SourceTree:
    """Files of a release by path. ``root`` is the folder from which its packages are imported, empty for the top."""

    files: Mapping[str, bytes]

    @cached_property
    def root(self) -> str:
        """``src`` where packages lie there."""
        return "src" if any(path.startswith("src/") and path.endswith(".py") for path in self.files) else ""

    @cached_property
    def tests(self) -> tuple[str, ...]:
        """Every file that tests consist of: their modules, and what lies beside these."""
        return tuple(path for path in self.files if is_test(path))

    @cached_property
    def test_modules(self) -> tuple[str, ...]:
        """What pytest is asked to collect."""
        modules = [path for path in self.tests if path.endswith(".py") and not path.endswith("/__init__.py")]
        return tuple(path for path in modules if PurePosixPath(path).name not in ("conftest.py", "setup.py"))

    @property
    def frame(self) -> dict[str, bytes]:
        """All that is no code: tests, data, metadata."""
        return {path: data for path, data in self.files.items() if path not in self.code}

    @cached_property
    def code(self) -> tuple[str, ...]:
        """Python files of the packages and modules that it installs."""
        return tuple(path for path in self.files if self._is_code(path))

    @cached_property
    def packages(self) -> tuple[str, ...]:
        """Top-level names that its code is imported by."""
        return tuple(sorted({self.package_of(path) for path in self.code}))

    @property
    def importable(self) -> dict[str, bytes]:
        """Its packages with their data and without tests, by paths from where they are imported."""
        files = {self.import_path(path): data for path, data in self.files.items()}
        return {
            path: data
            for path, data in files.items()
            if path.partition("/")[0].removesuffix(".py") in self.packages and not is_test(path)
        }

    def import_path(self, path: str) -> str:
        """The path of a file from where packages are imported."""
        return path.removeprefix("src/") if self.root else path

    def package_of(self, path: str) -> str:
        """The top-level name that a file of code is imported by."""
        return self.import_path(path).partition("/")[0].removesuffix(".py")

    def _is_code(self, path: str) -> bool:
        if not path.endswith(".py") or is_test(path):
            return False
        if self.root:
            return path.startswith("src/")
        top, _, rest = path.partition("/")
        return top.removesuffix(".py") not in _NO_PACKAGES and (not rest or f"{top}/__init__.py" in self.files)

    @cached_property
    def licence(self) -> str:
        """As its metadata state it; else the name of a file of it; empty where there is neither."""
        headers = BytesHeaderParser().parsebytes(self.files.get("PKG-INFO", b""))
        classifiers = [str(text) for text in headers.get_all("Classifier", []) if str(text).startswith("License ::")]
        named = [text.rpartition(" :: ")[2] for text in classifiers]
        stated = [str(headers.get(field) or "").strip() for field in ("License-Expression", "License")]
        lines = [text.splitlines()[0].strip() for text in (*stated, *named) if text]
        files = [f"see {path}" for path in self.files if re.fullmatch(r"(?i)(?:licen[cs]e|copying)[^/]*", path)]
        return next((line[:100] for line in (*lines, *files) if line and line.upper() != "UNKNOWN"), "")


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests of a package, by its path."""
    *folders, name = path.split("/")
    return not _TESTS.isdisjoint(folders) or bool(_TEST_NAME.fullmatch(name))


def changed_lines(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> int:
    """Count the lines of code, tests aside, that only one of two versions has: the larger of both numbers, summed over
    their Python files. A line that moved is no other line."""
    count = 0
    for path in {*before, *after}:
        if path.endswith(".py") and not is_test(path) and before.get(path) != after.get(path):
            old, new = (Counter(files.get(path, b"").splitlines()) for files in (before, after))
            count += max((old - new).total(), (new - old).total())
    return count


def source_tree(data: bytes) -> SourceTree:
    """Read a source distribution (``.tar.gz``) in memory: regular files of a modest size, under plain names.

    Links, devices and compiled files are left out.

    Raises:
        OperationError: it is no such archive, holds too much, or a name that leads out of it.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            files = dict(_files(archive))
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise OperationError("its archive cannot be read", f"{type(error).__name__}: {error}") from error
    if len(files) > MOST_FILES:
        raise OperationError(f"its tree has more than {MOST_FILES:,} files")
    return SourceTree(dict(sorted(files.items())))


def _files(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    size = 0
    for number, member in enumerate(archive):
        size += member.size
        if number > MOST_MEMBERS or size > 10 * MOST_BYTES:
            raise OperationError("its archive is too large")
        name = member.name.removeprefix("./").partition("/")[2]
        if not is_inside(member.name.removeprefix("./").rstrip("/")):
            raise OperationError(f"its archive holds the name {member.name[:80]!r}")
        if member.isreg() and name and is_inside(name) and not _UNWANTED.search(name) and member.size <= LARGEST:
            content = archive.extractfile(member)
            yield name, content.read() if content else b""
