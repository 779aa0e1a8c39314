"""Files of rows in a folder that the user names: found by name, read whole, known by digest."""

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path

from agent0.errors import ConfigError, NotFoundError, RequirementsError
from agent0.ports.storage import BenchmarkFiles, Dataset
from infra.storage.files import read_regular

LARGEST = 512 << 20
"""Bytes of a file, unpacked."""


class BenchmarkFolder(BenchmarkFiles):
    """The files of ``folder``, each read once; none where it is None."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._held: dict[str, Dataset] = {}

    def find(self, names: Sequence[str], benchmark: str) -> Dataset:
        """As ``BenchmarkFiles.find``."""
        if self._folder is None:
            fix = "Name the folder of its rows: benchmarks.folder, or AGENT0_BENCHMARKS"
            raise RequirementsError(f"No folder with rows of {benchmark} is named.", fix=fix)
        if benchmark not in self._held:
            self._held[benchmark] = find(self._folder, names, benchmark)
        return self._held[benchmark]


def find(folder: Path, names: Sequence[str], what: str) -> Dataset:
    """The first of ``names`` that is in ``folder``, also packed as ``.gz``.

    Raises:
        NotFoundError: none is.
        ConfigError: it cannot be read.
    """
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return load(path)
    fix = f"Name their folder with --data or benchmarks.folder, or get them with: agent0 bench fetch {what}"
    raise NotFoundError(f"No rows of {what} in {folder}.", f"Looked for: {', '.join(names)}.", fix)


def load(path: Path) -> Dataset:
    """A whole file.

    Raises:
        ConfigError: too large, no UTF-8, or not packed as its name says.
    """
    try:
        data = read_regular(path, LARGEST)
        plain = _unpacked(data) if path.suffix == ".gz" else data
        return Dataset(path.name, plain.decode("utf-8"), hashlib.sha256(data).hexdigest())
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ConfigError(
            f"{path} cannot be read.", f"{error}.", "It must be UTF-8 text, or that packed by gzip."
        ) from error


def _unpacked(data: bytes) -> bytes:
    """All members of a gzip file, at most ``LARGEST`` bytes of them."""
    plain = b""
    while data:
        unpacker = zlib.decompressobj(wbits=31)
        plain += unpacker.decompress(data, LARGEST - len(plain) + 1)
        if len(plain) > LARGEST:
            raise ValueError(f"more than {LARGEST >> 20} MiB unpacked")
        if not unpacker.eof:
            raise EOFError("it ends in the middle")
        data = unpacker.unused_data.lstrip(b"\0")  # padding of tape blocks, which gzip itself allows
    return plain
