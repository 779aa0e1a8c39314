"""Calls to model servers whose first word is still to come, in this process and as other processes may read it."""

import itertools
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SHOWN_S = 5.0
"""Seconds without a first word from which a person is told."""
FRESH_S = 10.0
"""Age in seconds from which what another process wrote counts for nothing: that process is gone."""
FOLDER = "waits"

_number = itertools.count()
_open: dict[int, tuple[str, float]] = {}


@contextmanager
def awaited(where: str) -> Iterator[None]:
    """Count a call to ``where`` (a model at an address) as one without a first word, as long as this is held."""
    number = next(_number)
    _open[number] = where, time.monotonic()
    try:
        yield
    finally:
        del _open[number]


def text() -> str:
    """Say which server has owed its first word longest, and for how long; empty where none has for ``SHOWN_S``."""
    if not _open:
        return ""
    where, since = min(_open.values(), key=lambda entry: entry[1])
    seconds = time.monotonic() - since
    named = f"the model at {where[3:].rstrip('.')}" if where.startswith("At ") else where
    return f"the first token of {named}, {seconds:.0f} s" if seconds >= SHOWN_S else ""


def write(home: Path) -> None:
    """Write down what this process waits for, or that it waits for nothing."""
    path, waits = home / FOLDER / f"{os.getpid()}.json", text()
    with suppress(OSError):
        if not waits:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(json.dumps({"waits": waits}))


def read(home: Path) -> str:
    """What any process of this data folder waits for; empty where none does."""
    for path in sorted((home / FOLDER).glob("*.json")):
        with suppress(OSError, ValueError, TypeError, KeyError):
            if time.time() - path.stat().st_mtime < FRESH_S:
                return str(json.loads(path.read_text())["waits"])
    return ""
