"""The tables that a command reads, and the run that its user names."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agent0.assembly.runtime.read_models import reading, refresh
from agent0.cli import console, flags
from agent0.errors import NotFoundError
from agent0.projections.runs import resolve, show_run
from agent0.settings import Settings


@contextmanager
def tables(chosen: Settings | None = None) -> Iterator[sqlite3.Connection]:
    """The read models of ``chosen`` (None: the command's own settings), caught up with the log where it can be reached;
    says so where it cannot.

    Raises:
        NotFoundError: there are none yet.
    """
    chosen = chosen or flags.settings()
    warning = console.run_async(lambda: refresh(chosen))
    if warning:
        console.say(warning, "yellow")
    with reading(chosen) as db:
        yield db


def run_id(run: str, chosen: Settings | None = None) -> str:
    """The id of the run that a user named: by id, unique beginning, name, LAST or LAST~1.

    Raises:
        NotFoundError: there is no such run, or several.
    """
    with tables(chosen) as db:
        return resolve(db, run)


def run_row(run: str, chosen: Settings | None = None) -> dict[str, Any]:
    """The row of the run that a user named, in the table of runs.

    Raises:
        NotFoundError: as ``run_id``.
    """
    with tables(chosen) as db:
        return show_run(db, run)


def of_newest(name: str) -> str:
    """``RUN`` or ``RUN/CHECKPOINT`` with the run's id for whatever else names it; what names no run (a digest, an
    experiment) as it is.

    Raises:
        NotFoundError: LAST without a run, or a name that several have.
    """
    run, slash, rest = name.partition("/")
    try:
        return f"{run_id(run)}{slash}{rest}" if run else name
    except NotFoundError as error:
        if error.what.startswith("There is no run '"):
            return name
        raise
