"""Why a process cannot store what it has done, for other processes to read: the log, or the store of artifacts, takes
nothing just now."""

import os
import time
from contextlib import suppress
from pathlib import Path

FRESH_S = 40.0
"""Age in seconds from which what another process wrote counts for nothing; one try of an append takes up to 15."""
FOLDER, ENDING = "waits", ".log"


class LogWait:
    """What one process waits for; ``text`` is empty where it waits for nothing."""

    def __init__(self, home: Path) -> None:
        self._path = home / FOLDER / f"{os.getpid()}{ENDING}"
        self.text = ""

    def begin(self, why: str) -> None:
        """Note ``why`` nothing is stored; again at each try."""
        self.text = why
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.write_text(why)

    def end(self) -> None:
        """Something was stored, or is given up."""
        if self.text:
            self.text = ""
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def read(home: Path) -> str:
    """What any process of this data folder waits for; empty where none does."""
    for path in sorted((home / FOLDER).glob(f"*{ENDING}")):
        with suppress(OSError, ValueError):
            if time.time() - path.stat().st_mtime < FRESH_S:
                return path.read_text()
    return ""
