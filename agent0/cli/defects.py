"""Unexpected errors: a mistake of this program, reported with the place of its traceback."""

import os
import sys
import traceback
from datetime import UTC, datetime

from agent0.cli import flags
from agent0.errors import Agent0Error, OperationError, sentence


def defect(error: BaseException) -> Agent0Error:
    """A mistake of ours: its traceback goes where it can be sent from, not into a person's face."""
    trace = "".join(traceback.format_exception(error))
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    why = f"{type(error).__name__}: {sentence(str(error)[:500]) or 'no message.'} This is a defect of Agent0."
    try:
        where = _write_trace(trace)
    except (Agent0Error, OSError):  # no settings or no folder: then here
        where = ""
    if not where:
        sys.stderr.write(trace)
    fix = f"The traceback is in {where}; please report it." if where else "The traceback is above; please report it."
    return OperationError("Something unexpected happened.", why, fix)


def _write_trace(trace: str) -> str:
    """Path of the file written; empty where AGENT0_DEBUG wants the traceback on stderr or there is no data folder."""
    if os.environ.get("AGENT0_DEBUG") == "1" or not (home := flags.settings().home).is_dir():
        return ""
    path = home / f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.txt"
    path.touch(mode=0o600)
    path.write_text(trace, encoding="utf-8", errors="backslashreplace")
    return str(path)
