"""Where settings come from: TOML files, .env files, the environment and flags, each as a layer of flat entries.

Part of the rim: it reads files. An entry keeps the place it was written at, so that every error can name it.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dotenv.parser import parse_stream

from agent0.config.setting_entries import PREFIX, SettingEntry
from agent0.errors import ConfigError

SHORTCUTS = {"AGENT0_BENCHMARKS": "benchmarks.folder", "AGENT0_NATS_URL": "nats.url"}
"""Environment names besides ``AGENT0_A__B`` for ``a.b``."""

FOREIGN = frozenset({"AGENT0_DEBUG"})
"""Environment names that are no setting: the command line's last resort reads them."""

_header = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_key = re.compile(r"^\s*([A-Za-z0-9_.\"'-]+)\s*=")


def environment(env: Mapping[str, str], origin: str = "environment") -> list[SettingEntry]:
    """Entries of ``AGENT0_*``; ``__`` separates levels and case does not matter."""
    names = [name for name in env if name.startswith(PREFIX) and name not in FOREIGN]
    return [SettingEntry(_variable_key(name), env[name], f"{origin} {name}") for name in sorted(names)]


def dotenv(path: Path) -> list[SettingEntry]:
    """Entries of a ``.env`` file; lines about other programs are left alone.

    Raises:
        ConfigError: a line that is no assignment, or a file that cannot be read.
    """
    if not path.is_file():
        return []
    entries = []
    with path.open(encoding="utf-8") as stream:
        for line in parse_stream(stream):
            where = f"{path}:{line.original.line}"
            if line.error:
                raise ConfigError(f"{where} is no assignment.", "Lines of a .env file read NAME=value.", "Correct it.")
            if line.key and line.key.startswith(PREFIX) and line.key not in FOREIGN:
                entries.append(SettingEntry(_variable_key(line.key), line.value or "", where))
    return entries


def toml(path: Path) -> dict[str, object]:
    """The tables of a TOML file; nothing where there is none.

    Raises:
        ConfigError: not TOML, or a file that cannot be read.
    """
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read as TOML.", str(error), "Correct the file.") from error


def entries(tables: Mapping[str, object], path: Path, under: str = "") -> list[SettingEntry]:
    """Flat entries of ``tables``; ``under`` is the dotted table of the file that they were found in."""
    lines = _lines(path) if tables else {}

    def origin_of(key: str) -> str:
        full = f"{under}.{key}" if under else key
        while full and full not in lines:
            full = full.rpartition(".")[0]
        return f"{path}:{lines[full]}" if full else str(path)

    return [SettingEntry(key, value, origin_of(key)) for key, value in _flat(tables)]


def _variable_key(name: str) -> str:
    return SHORTCUTS.get(name) or name.removeprefix(PREFIX).lower().replace("__", ".")


def _flat(tables: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _lines(path: Path) -> dict[str, int]:
    """Line number of every dotted key and table as far as plain reading finds them."""
    line_numbers: dict[str, int] = {}
    table = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if header := _header.match(line):
            table = _bare(header[1])
            line_numbers.setdefault(table, number)
        elif key := _key.match(line):
            line_numbers.setdefault(f"{table}.{_bare(key[1])}".lstrip("."), number)
    return line_numbers


def _bare(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))
