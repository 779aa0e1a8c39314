"""The disk of the data folder: what of it is kept free, so that a run that waits for space can still say so."""

import os
import shutil
from pathlib import Path

from agent0.errors import DependencyError

RESERVE = 64 << 20
"""Bytes that work leaves free: the log records there that a run waits, fails or goes on."""
NAME = "disk space"


def require_room(home: Path) -> None:
    """Check that more than the reserve is free where ``home`` is.

    Raises:
        DependencyError: less is free.
    """
    if why := shortage(home):
        raise DependencyError(NAME, why, "Free some space, then it goes on: nothing is lost.")


def shortage(home: Path) -> str:
    """Say how full the disk of ``home`` is; empty where more than the reserve is free, or it cannot be seen."""
    try:
        free = shutil.disk_usage(home).free
    except OSError:
        return ""
    if free >= RESERVE:
        return ""
    return f"The disk is full: {free / (1 << 20):,.0f} MiB are free at {home}, and {RESERVE >> 20} are kept free."


def waits(home: Path) -> str:
    """Say that runs in ``home`` wait for space, which a disk without any room cannot record; empty where there is."""
    return f"{NAME}: {why}" if (why := shortage(home)) else ""


def writable(folder: Path) -> bool:
    """Whether this process may make and change files in ``folder``."""
    return os.access(folder, os.W_OK | os.X_OK)
